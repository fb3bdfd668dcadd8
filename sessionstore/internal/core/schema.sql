-- The tables of every database. The words in braces differ: {key} is a number that the database
-- gives a row, greater than those of earlier rows; {text} is compared by its bytes, and {bytes} may
-- be any. Each database has further tables for the words of passages.

-- What the tables say of themselves, in one row.
CREATE TABLE meta (
	version bigint NOT NULL
);
INSERT INTO meta VALUES ({version});

-- The owner is in every table, and begins every index of a list.
CREATE TABLE agents (
	key     {key},
	owner   {text} NOT NULL,
	kind    {text} NOT NULL,
	profile {text} NOT NULL,
	UNIQUE (owner, kind, profile)
);

-- Times are milliseconds since 1970, UTC. Lists of directories are JSON arrays. A *_hash is the
-- FNV-1a of its column, so that an index entry is small however long a path is.
CREATE TABLE sessions (
	owner          {text}  NOT NULL,
	id             {text}  NOT NULL,
	key            bigint  NOT NULL, -- its first generation, by which other tables name it
	agent          bigint  NOT NULL,
	cwd            {text}  NOT NULL,
	dirs           {text}  NOT NULL,
	real_cwd       {text}  NOT NULL,
	real_dirs      {text}  NOT NULL,
	read_only      {text}  NOT NULL DEFAULT '[]', -- those of cwd and dirs that may only be read
	cwd_hash       bigint  NOT NULL,
	dirs_hash      bigint  NOT NULL,
	real_cwd_hash  bigint  NOT NULL,
	real_dirs_hash bigint  NOT NULL,
	title          text    NOT NULL,
	created        bigint  NOT NULL,
	updated        bigint  NOT NULL,
	generation     bigint  NOT NULL, -- of the newest lease
	turns          bigint  NOT NULL DEFAULT 0,  -- that were begun
	running        text    NOT NULL DEFAULT '[]', -- the numbers of the running turns, as JSON
	first          bigint  NOT NULL DEFAULT 0,  -- the number of the first turn since open
	open           bigint  NOT NULL DEFAULT 0,  -- the first segment of the running turns, 0 between turns
	strand         bigint  NOT NULL,            -- where its segments are
	last           bigint  NOT NULL DEFAULT 0,  -- the number of its last segment
	name           {bytes},                     -- SHA-256 of state_key
	state_key      {bytes},
	imported       boolean NOT NULL DEFAULT FALSE,
	listed         bigint  NOT NULL DEFAULT 0, -- when its agent listed it first, negated if it no longer does
	archived       boolean NOT NULL DEFAULT FALSE,
	renamed        boolean NOT NULL DEFAULT FALSE,
	meta           {bytes} NOT NULL,
	listing        bigint  NOT NULL,           -- which lists show it, see listing
	complete       bigint  NOT NULL DEFAULT 0, -- the last segment whose passages are complete
	seen           bigint  NOT NULL DEFAULT 0, -- the last segment of which there are passages
	stale          boolean NOT NULL DEFAULT FALSE -- whether there are later segments
);
CREATE UNIQUE INDEX by_id     ON sessions (owner, id);
CREATE UNIQUE INDEX of_key    ON sessions (owner, key);
CREATE UNIQUE INDEX of_strand ON sessions (owner, strand);
-- If this one began as those below, a planner without statistics would use it for lists.
CREATE UNIQUE INDEX by_name ON sessions (name, owner, agent);
CREATE INDEX by_activity  ON sessions (owner, agent, listing, updated DESC, id DESC);
CREATE INDEX by_cwd       ON sessions (owner, agent, listing, cwd_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd  ON sessions (owner, agent, listing, real_cwd_hash, updated DESC, id DESC);
CREATE INDEX by_dirs      ON sessions (owner, agent, listing, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_dirs ON sessions (owner, agent, listing, real_dirs_hash, updated DESC, id DESC);
CREATE INDEX unindexed    ON sessions (owner, updated, id) WHERE stale;

-- Groups of updates, one a line, and then their checksum.
CREATE TABLE segments (
	owner  {text}  NOT NULL,
	strand bigint  NOT NULL,
	seq    bigint  NOT NULL, -- from 1
	body   {bytes} NOT NULL,
	PRIMARY KEY (owner, strand, seq)
);

-- The latest update of each state kind, and the backend's own value, whose kind is ''.
CREATE TABLE states (
	owner   {text}  NOT NULL,
	session bigint  NOT NULL,
	kind    {text}  NOT NULL,
	body    {bytes} NOT NULL,
	PRIMARY KEY (owner, session, kind)
);

-- Parts that are to be added to a session's history: strands that no session has yet. Those that
-- began long ago have expired. A strand that is no longer needed becomes a draft that began at 0; then session
-- is a session that was deleted, or 0.
CREATE TABLE drafts (
	owner   {text} NOT NULL,
	strand  bigint NOT NULL,
	session bigint NOT NULL,
	started bigint NOT NULL,
	PRIMARY KEY (owner, strand)
);
CREATE INDEX drafts_of ON drafts (owner, session);
CREATE INDEX drafts_by_age ON drafts (started);

-- Sessions that were deleted here, and which their agent may still list.
CREATE TABLE tombstones (
	owner   {text}  NOT NULL,
	agent   bigint  NOT NULL,
	name    {bytes} NOT NULL, -- SHA-256 of the state key
	deleted bigint  NOT NULL, -- or last listed by the agent
	PRIMARY KEY (owner, agent, name)
);
CREATE INDEX tombstones_by_age ON tombstones (owner, agent, deleted);

-- What searches find: the messages of histories. A long message is several passages.
CREATE TABLE passages (
	key    {key},
	owner  {text} NOT NULL,
	strand bigint NOT NULL,
	seq    bigint NOT NULL, -- the segment in which it begins
	said   bigint NOT NULL, -- the time of the session's last activity when it was added
	role   text   NOT NULL,
	body   text   NOT NULL
);
CREATE INDEX passages_of ON passages (owner, strand, seq);

-- What sessions have used, as their agents report it.
CREATE TABLE charges (
	key     {key},
	owner   {text} NOT NULL,
	session bigint NOT NULL,
	agent   bigint NOT NULL,
	at      bigint NOT NULL,
	source  {text} NOT NULL, -- names the agent's own session whose counter was read
	meter   {text} NOT NULL,
	unit    {text} NOT NULL,
	amount  double precision NOT NULL,
	reading double precision NOT NULL, -- of the agent's counter
	mark    {text} NOT NULL
);
CREATE INDEX charges_of      ON charges (owner, session, meter, unit, key);
CREATE INDEX charges_by_time ON charges (owner, at);

-- What the schema says of itself, in one row. Every version of the program reads "oldest".
CREATE TABLE meta (
	one     boolean PRIMARY KEY DEFAULT true CHECK (one),
	version integer NOT NULL,
	oldest  integer NOT NULL -- programs that know this version, or a newer one, may read and write
);

-- Numbers leases and strands. None is used twice.
CREATE SEQUENCE generations;

-- The owner is in every key. Ids are compared by their bytes, as everywhere in the program.
CREATE TABLE agents (
	owner   text COLLATE "C" NOT NULL,
	key     bigint GENERATED ALWAYS AS IDENTITY,
	kind    text COLLATE "C" NOT NULL,
	profile text COLLATE "C" NOT NULL,
	PRIMARY KEY (owner, key),
	UNIQUE (owner, kind, profile)
);

-- Times are milliseconds since 1970, UTC, of this server.
CREATE TABLE sessions (
	owner      text COLLATE "C" NOT NULL,
	id         text COLLATE "C" NOT NULL,
	agent      bigint  NOT NULL,
	cwd        text    COLLATE "C" NOT NULL,
	dirs       text[]  COLLATE "C" NOT NULL,
	real_cwd   text    COLLATE "C" NOT NULL,
	real_dirs  text[]  COLLATE "C" NOT NULL,
	title      text    NOT NULL,
	created    bigint  NOT NULL,
	updated    bigint  NOT NULL,
	generation bigint  NOT NULL, -- of the newest lease
	born       bigint  NOT NULL, -- of the first lease
	turns      bigint  NOT NULL DEFAULT 0,    -- that were begun
	running    bigint[] NOT NULL DEFAULT '{}', -- the numbers of the running turns
	first      bigint  NOT NULL DEFAULT 0,    -- the number of the first turn since open
	open       bigint  NOT NULL DEFAULT 0,    -- the first segment of the running turns, 0 between turns
	strand     bigint  NOT NULL,              -- where its segments are
	last       bigint  NOT NULL DEFAULT 0,    -- the number of its last segment
	state      bytea,
	state_key  bytea, -- bytes, since an agent may use any
	imported   boolean NOT NULL DEFAULT false,
	listed     bigint  NOT NULL DEFAULT 0, -- when its agent listed it first, negated if it no longer does
	archived   boolean NOT NULL DEFAULT false,
	renamed    boolean NOT NULL DEFAULT false,
	meta       bytea   NOT NULL DEFAULT '',
	-- Which lists show it: 0 ordinary ones, 1 those of archived sessions, 2 is an unused session.
	listing    smallint GENERATED ALWAYS AS (
		CASE WHEN archived THEN 1 WHEN turns > 0 OR last > 0 OR imported THEN 0 ELSE 2 END) STORED,
	PRIMARY KEY (owner, id),
	FOREIGN KEY (owner, agent) REFERENCES agents
);
CREATE UNIQUE INDEX by_state_key ON sessions (owner, agent, sha256(state_key));

-- One index for each combination of filters. Paths may be too long for an index, so it has hashes.
CREATE INDEX by_activity           ON sessions (owner, agent, listing, updated DESC, id DESC);
CREATE INDEX by_cwd                ON sessions (owner, agent, listing, hashtextextended(cwd, 0), updated DESC, id DESC);
CREATE INDEX by_real_cwd           ON sessions (owner, agent, listing, hashtextextended(real_cwd, 0), updated DESC, id DESC);
CREATE INDEX by_dirs               ON sessions (owner, agent, listing, hash_array_extended(dirs, 0), updated DESC, id DESC);
CREATE INDEX by_real_dirs          ON sessions (owner, agent, listing, hash_array_extended(real_dirs, 0), updated DESC, id DESC);
CREATE INDEX by_cwd_dirs           ON sessions (owner, agent, listing, hashtextextended(cwd, 0), hash_array_extended(dirs, 0), updated DESC, id DESC);
CREATE INDEX by_cwd_real_dirs      ON sessions (owner, agent, listing, hashtextextended(cwd, 0), hash_array_extended(real_dirs, 0), updated DESC, id DESC);
CREATE INDEX by_real_cwd_dirs      ON sessions (owner, agent, listing, hashtextextended(real_cwd, 0), hash_array_extended(dirs, 0), updated DESC, id DESC);
CREATE INDEX by_real_cwd_real_dirs ON sessions (owner, agent, listing, hashtextextended(real_cwd, 0), hash_array_extended(real_dirs, 0), updated DESC, id DESC);

-- Groups of updates, one a line.
CREATE TABLE segments (
	owner  text COLLATE "C" NOT NULL,
	strand bigint NOT NULL,
	seq    bigint NOT NULL, -- from 1
	body   bytea  NOT NULL,
	PRIMARY KEY (owner, strand, seq)
);

CREATE TABLE states (
	owner text COLLATE "C" NOT NULL,
	id    text COLLATE "C" NOT NULL,
	kind  text COLLATE "C" NOT NULL,
	body  bytea NOT NULL,
	PRIMARY KEY (owner, id, kind),
	FOREIGN KEY (owner, id) REFERENCES sessions ON DELETE CASCADE
);

-- Histories that are to replace a session's: strands that no session has yet.
CREATE TABLE drafts (
	owner   text COLLATE "C" NOT NULL,
	strand  bigint NOT NULL,
	id      text COLLATE "C" NOT NULL,
	started bigint NOT NULL,
	PRIMARY KEY (owner, strand)
);
CREATE INDEX drafts_of ON drafts (owner, id);

-- Sessions that were deleted here, and which their agent may still list.
CREATE TABLE tombstones (
	owner   text COLLATE "C" NOT NULL,
	agent   bigint NOT NULL,
	name    bytea  NOT NULL, -- SHA-256 of the state key
	deleted bigint NOT NULL, -- or last listed by the agent
	PRIMARY KEY (owner, agent, name)
);
CREATE INDEX tombstones_by_age ON tombstones (owner, agent, deleted);

-- The second line of defence: a transaction sees the rows of the owner that it has named.
DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY '{agents,sessions,segments,states,drafts,tombstones}'::text[] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY own ON %I USING (''owner '' || owner = '
			'(SELECT current_setting(''acp_agent.owner'', true)))', name);
	END LOOP;
END $$;

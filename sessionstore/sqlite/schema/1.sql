-- What the file says of itself, in one row. Every version of the program reads "oldest".
CREATE TABLE meta (
	one         INTEGER PRIMARY KEY CHECK (one = 1),
	oldest      INTEGER NOT NULL, -- programs that know this schema version, or a newer one, may read and write the file
	generations INTEGER NOT NULL  -- the last generation that was handed out
) STRICT;
INSERT INTO meta VALUES (1, 1, 0);

CREATE TABLE agents (
	key     INTEGER PRIMARY KEY,
	kind    TEXT NOT NULL,
	profile TEXT NOT NULL,
	UNIQUE (kind, profile)
) STRICT;

-- Times are milliseconds since 1970, UTC. Lists of directories are JSON arrays of strings. A *_hash is
-- the FNV-1a of its column, so that an index entry is small however long the list is.
CREATE TABLE sessions (
	key            INTEGER PRIMARY KEY,
	id             TEXT    NOT NULL UNIQUE,
	agent          INTEGER NOT NULL REFERENCES agents,
	cwd            TEXT    NOT NULL,
	dirs           TEXT    NOT NULL,
	real_cwd       TEXT    NOT NULL,
	real_dirs      TEXT    NOT NULL,
	cwd_hash       INTEGER NOT NULL,
	dirs_hash      INTEGER NOT NULL,
	real_cwd_hash  INTEGER NOT NULL,
	real_dirs_hash INTEGER NOT NULL,
	title          TEXT    NOT NULL,
	created        INTEGER NOT NULL,
	updated        INTEGER NOT NULL,
	generation     INTEGER NOT NULL,
	turns          INTEGER NOT NULL, -- that were begun
	open           INTEGER NOT NULL, -- the first segment of the running turn, 0 between turns
	strand         INTEGER NOT NULL UNIQUE, -- where its own segments are; never used by another session
	last           INTEGER NOT NULL  -- its last segment, or the last one it inherited, or 0
) STRICT;

-- One index for each combination of filters and keys.
CREATE INDEX by_activity           ON sessions (agent, updated DESC, id DESC);
CREATE INDEX by_cwd                ON sessions (agent, cwd_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd           ON sessions (agent, real_cwd_hash, updated DESC, id DESC);
CREATE INDEX by_dirs               ON sessions (agent, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_dirs          ON sessions (agent, real_dirs_hash, updated DESC, id DESC);
CREATE INDEX by_cwd_dirs           ON sessions (agent, cwd_hash, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_cwd_real_dirs      ON sessions (agent, cwd_hash, real_dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd_dirs      ON sessions (agent, real_cwd_hash, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd_real_dirs ON sessions (agent, real_cwd_hash, real_dirs_hash, updated DESC, id DESC);

-- The runtime's own value. It has its own table, since the session's row is written with every segment.
CREATE TABLE runtime_states (
	session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
	body    BLOB NOT NULL
) STRICT;

-- A turn without an end runs. One with an end and no reason was interrupted; '' is an error.
CREATE TABLE turns (
	session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
	number  INTEGER NOT NULL,
	started INTEGER NOT NULL,
	ended   INTEGER,
	reason  TEXT,
	PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

-- A group of updates, one a line. The history of a session is what it inherits, then its own strand.
CREATE TABLE segments (
	strand  INTEGER NOT NULL,
	seq     INTEGER NOT NULL, -- counts through the history of the strand's session, from 1
	turn    INTEGER NOT NULL, -- the turn it came in, 0 between turns
	updates INTEGER NOT NULL, -- lines in body
	body    BLOB    NOT NULL,
	PRIMARY KEY (strand, seq)
) STRICT;

-- A fork shares its source's segments instead of copying them: those of strand that come after the ones
-- inherited before it, up to last. Segments that no session needs any more are deleted at once.
CREATE TABLE inherits (
	session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
	last    INTEGER NOT NULL,
	strand  INTEGER NOT NULL,
	PRIMARY KEY (session, last)
) STRICT, WITHOUT ROWID;
CREATE INDEX inherited ON inherits (strand, last);

CREATE TABLE states (
	session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
	kind    TEXT    NOT NULL,
	body    BLOB    NOT NULL,
	PRIMARY KEY (session, kind)
) STRICT, WITHOUT ROWID;

-- The schema of the first release. A later version is a further file with the statements that change
-- this one; programs of this version must still be able to use the tables, unless "oldest" says
-- otherwise.

-- What the schema says of itself, in one row. Every version of the program reads "oldest".
CREATE TABLE meta (
	one     boolean PRIMARY KEY DEFAULT true CHECK (one),
	version integer NOT NULL,
	oldest  integer NOT NULL, -- programs that know this version, or a newer one, may read and write
	pruned  bigint  NOT NULL DEFAULT 0 -- when sessions that were never prompted were last deleted
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
	-- How far its history is in passages.
	indexed    bigint  NOT NULL DEFAULT 0, -- the strand that they are from
	complete   bigint  NOT NULL DEFAULT 0, -- the last segment whose passages are complete
	seen       bigint  NOT NULL DEFAULT 0, -- the last segment of which there are passages
	stale      boolean GENERATED ALWAYS AS (last > 0 AND (indexed <> strand OR seen < last)) STORED,
	-- Paths may be too long for an index. Row-level security keeps conditions on functions of columns,
	-- which might leak them, from using an index: so hashes are columns.
	cwd_hash       bigint GENERATED ALWAYS AS (hashtextextended(cwd, 0)) STORED,
	real_cwd_hash  bigint GENERATED ALWAYS AS (hashtextextended(real_cwd, 0)) STORED,
	dirs_hash      bigint GENERATED ALWAYS AS (hash_array_extended(dirs, 0)) STORED,
	real_dirs_hash bigint GENERATED ALWAYS AS (hash_array_extended(real_dirs, 0)) STORED,
	state_key_hash bytea  GENERATED ALWAYS AS (sha256(state_key)) STORED,
	PRIMARY KEY (owner, id),
	FOREIGN KEY (owner, agent) REFERENCES agents
);
-- If this one began as those below, a planner without statistics would use it for lists.
CREATE UNIQUE INDEX by_state_key ON sessions (state_key_hash, owner, agent);

-- One index for each combination of filters.
CREATE INDEX by_activity           ON sessions (owner, agent, listing, updated DESC, id DESC);
CREATE INDEX by_cwd                ON sessions (owner, agent, listing, cwd_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd           ON sessions (owner, agent, listing, real_cwd_hash, updated DESC, id DESC);
CREATE INDEX by_dirs               ON sessions (owner, agent, listing, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_dirs          ON sessions (owner, agent, listing, real_dirs_hash, updated DESC, id DESC);
CREATE INDEX by_cwd_dirs           ON sessions (owner, agent, listing, cwd_hash, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_cwd_real_dirs      ON sessions (owner, agent, listing, cwd_hash, real_dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd_dirs      ON sessions (owner, agent, listing, real_cwd_hash, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd_real_dirs ON sessions (owner, agent, listing, real_cwd_hash, real_dirs_hash, updated DESC, id DESC);
CREATE INDEX unindexed             ON sessions (owner, updated, id) WHERE stale;

-- Groups of updates, one a line, and then their checksum.
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

-- Parts of histories that are to be added to a session's: strands that no session has yet.
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

-- What searches find: the messages of histories. A long message is several passages.
CREATE TABLE passages (
	owner text COLLATE "C" NOT NULL,
	key   bigint NOT NULL, -- greater than those that were added before
	id    text COLLATE "C" NOT NULL,
	seq   bigint NOT NULL, -- the segment in which it begins
	said  bigint NOT NULL, -- the time of the session's last activity when it was added
	role  text   NOT NULL,
	body  text   NOT NULL,
	PRIMARY KEY (owner, key),
	FOREIGN KEY (owner, id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX passages_of ON passages (owner, id, seq);
CREATE SEQUENCE passage_keys;

-- Their words. Each begins with a hash of the owner, so that a search reads nothing of other owners.
CREATE TABLE words (
	owner   text COLLATE "C" NOT NULL,
	passage bigint NOT NULL,
	words   tsvector NOT NULL,
	PRIMARY KEY (passage, owner), -- in this order, so that searches use the other index
	FOREIGN KEY (owner, passage) REFERENCES passages ON DELETE CASCADE
);
CREATE INDEX by_word ON words USING gin (words);

-- The second line of defence: a transaction sees the rows of the owner that it has named. The
-- planner can estimate how many rows this lets through.
DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY '{agents,sessions,segments,states,drafts,tombstones,passages}'::text[] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY own ON %I USING (owner = (SELECT CASE WHEN '
			'current_setting(''acp_agent.owner'', true) LIKE ''owner %%'' '
			'THEN substr(current_setting(''acp_agent.owner'', true), 7) END))', name);
	END LOOP;
END $$;

-- The names of owners can be listed. This shows nothing of their sessions.
CREATE POLICY names ON agents FOR SELECT
	USING ((SELECT current_setting('acp_agent.owner', true)) = 'every owner');

-- Whoever has a session open learns that another server took it over or deleted it. Any user of the
-- database can listen, so the announcement does not tell whose session it is.
CREATE FUNCTION announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_notify('acp_agent', encode(sha256(
		convert_to(OLD.owner, 'UTF8') || '\x00'::bytea || convert_to(OLD.id, 'UTF8')), 'hex'));
	RETURN NULL;
END $$;
CREATE TRIGGER announce_lease AFTER UPDATE OF generation ON sessions FOR EACH ROW
	WHEN (OLD.generation <> NEW.generation) EXECUTE FUNCTION announce();
CREATE TRIGGER announce_delete AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION announce();

-- Row-level security keeps a query's full-text condition from using an index, since it might leak rows. So the
-- policy has the condition: a transaction sees the rows of its owner that match what it looks for. Rows are
-- deleted with their passages.
ALTER TABLE words ENABLE ROW LEVEL SECURITY;
ALTER TABLE words FORCE ROW LEVEL SECURITY;
CREATE POLICY found ON words FOR SELECT USING (
	words @@ (SELECT current_setting('acp_agent.search', true)::tsquery)
	AND owner = (SELECT CASE WHEN current_setting('acp_agent.owner', true) LIKE 'owner %'
		THEN substr(current_setting('acp_agent.owner', true), 7) END));
CREATE POLICY added ON words FOR INSERT WITH CHECK (owner = (SELECT CASE WHEN
	current_setting('acp_agent.owner', true) LIKE 'owner %'
	THEN substr(current_setting('acp_agent.owner', true), 7) END));

-- When sessions that were never prompted were last deleted.
ALTER TABLE meta ADD COLUMN pruned bigint NOT NULL DEFAULT 0;

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

-- Row-level security keeps conditions on functions of columns, which might leak them, from using an
-- index: hashes are columns.
ALTER TABLE sessions
	ADD COLUMN cwd_hash       bigint GENERATED ALWAYS AS (hashtextextended(cwd, 0)) STORED,
	ADD COLUMN real_cwd_hash  bigint GENERATED ALWAYS AS (hashtextextended(real_cwd, 0)) STORED,
	ADD COLUMN dirs_hash      bigint GENERATED ALWAYS AS (hash_array_extended(dirs, 0)) STORED,
	ADD COLUMN real_dirs_hash bigint GENERATED ALWAYS AS (hash_array_extended(real_dirs, 0)) STORED,
	ADD COLUMN state_key_hash bytea  GENERATED ALWAYS AS (sha256(state_key)) STORED;
DROP INDEX by_state_key, by_cwd, by_real_cwd, by_dirs, by_real_dirs,
	by_cwd_dirs, by_cwd_real_dirs, by_real_cwd_dirs, by_real_cwd_real_dirs;
-- If this one began as those below, a planner without statistics would use it for lists.
CREATE UNIQUE INDEX by_state_key ON sessions (state_key_hash, owner, agent);
CREATE INDEX by_cwd                ON sessions (owner, agent, listing, cwd_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd           ON sessions (owner, agent, listing, real_cwd_hash, updated DESC, id DESC);
CREATE INDEX by_dirs               ON sessions (owner, agent, listing, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_dirs          ON sessions (owner, agent, listing, real_dirs_hash, updated DESC, id DESC);
CREATE INDEX by_cwd_dirs           ON sessions (owner, agent, listing, cwd_hash, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_cwd_real_dirs      ON sessions (owner, agent, listing, cwd_hash, real_dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd_dirs      ON sessions (owner, agent, listing, real_cwd_hash, dirs_hash, updated DESC, id DESC);
CREATE INDEX by_real_cwd_real_dirs ON sessions (owner, agent, listing, real_cwd_hash, real_dirs_hash, updated DESC, id DESC);

-- The planner can estimate how many rows these policies let through.
DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY '{agents,sessions,segments,states,drafts,tombstones}'::text[] LOOP
		EXECUTE format('ALTER POLICY own ON %I USING (owner = (SELECT CASE WHEN '
			'current_setting(''acp_agent.owner'', true) LIKE ''owner %%'' '
			'THEN substr(current_setting(''acp_agent.owner'', true), 7) END))', name);
	END LOOP;
END $$;

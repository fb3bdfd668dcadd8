-- What only PostgreSQL has besides the tables of every database.

-- Numbers of sessions, leases and strands. None is used twice.
CREATE SEQUENCE numbers;

-- The words of passages. Each begins with a hash of the owner, so that a search reads nothing of other owners.
CREATE TABLE words (
	owner   text COLLATE "C" NOT NULL,
	passage bigint NOT NULL REFERENCES passages ON DELETE CASCADE,
	words   tsvector NOT NULL,
	PRIMARY KEY (passage, owner) -- in this order, so that searches use the other index
);
CREATE INDEX by_word ON words USING gin (words);

-- The second line of defence: a transaction sees the rows of the owner that it has named. The
-- planner can estimate how many rows this lets through.
DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY '{agents,sessions,segments,states,drafts,tombstones,passages,charges}'::text[] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY own ON %I USING (owner = (SELECT CASE WHEN '
			'current_setting(''acp_agent.owner'', true) LIKE ''owner %%'' '
			'THEN substr(current_setting(''acp_agent.owner'', true), 7) END))', name);
	END LOOP;
END $$;

-- The names of owners can be listed, and those of owners with drafts to purge. This shows nothing of
-- their sessions.
CREATE POLICY names ON agents FOR SELECT
	USING ((SELECT current_setting('acp_agent.owner', true)) = 'every owner');
CREATE POLICY names ON drafts FOR SELECT
	USING ((SELECT current_setting('acp_agent.owner', true)) = 'every owner');

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

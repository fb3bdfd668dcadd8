-- Lets the role acp_backup read the sessions of all users, so that pg_dump needs no superuser. A
-- role that may create roles runs the first line; the owner of the tables the rest, once, and again
-- after an update that has made tables:
--
--	psql -f docs/operating/deploy/backup.sql "$ACP_AGENT_STORE"
--
-- CREATE ROLE acp_backup LOGIN PASSWORD '…';
GRANT USAGE ON SCHEMA acp_agent TO acp_backup;
GRANT SELECT ON ALL TABLES IN SCHEMA acp_agent TO acp_backup;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA acp_agent TO acp_backup;
SET client_min_messages = warning;
DO $$
DECLARE name text;
BEGIN
	FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'acp_agent' AND rowsecurity LOOP
		EXECUTE format('DROP POLICY IF EXISTS backup ON acp_agent.%I', name);
		EXECUTE format('CREATE POLICY backup ON acp_agent.%I FOR SELECT TO acp_backup USING (true)', name);
	END LOOP;
END $$;

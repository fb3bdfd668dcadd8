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

-- How far a session's history is in passages. An older program does not know these columns.
ALTER TABLE sessions
	ADD COLUMN indexed  bigint NOT NULL DEFAULT 0, -- the strand that they are from
	ADD COLUMN complete bigint NOT NULL DEFAULT 0, -- the last segment whose passages are complete
	ADD COLUMN seen     bigint NOT NULL DEFAULT 0, -- the last segment of which there are passages
	ADD COLUMN stale    boolean GENERATED ALWAYS AS (last > 0 AND (indexed <> strand OR seen < last)) STORED;
CREATE INDEX unindexed ON sessions (owner, updated, id) WHERE stale;

ALTER TABLE passages ENABLE ROW LEVEL SECURITY;
ALTER TABLE passages FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON passages USING (owner = (SELECT CASE WHEN
	current_setting('acp_agent.owner', true) LIKE 'owner %'
	THEN substr(current_setting('acp_agent.owner', true), 7) END));

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

-- What sessions have used, as their agents report it. A program of version 4 adds nothing here, and
-- deletes what belongs to the sessions that it deletes.
CREATE SEQUENCE charge_keys;
CREATE TABLE charges (
	owner   text COLLATE "C" NOT NULL,
	key     bigint NOT NULL DEFAULT nextval('charge_keys'), -- greater than those that were added to the session before
	id      text COLLATE "C" NOT NULL,
	agent   bigint NOT NULL,
	at      bigint NOT NULL,
	source  text COLLATE "C" NOT NULL, -- names the agent's own session whose counter was read
	meter   text COLLATE "C" NOT NULL,
	unit    text COLLATE "C" NOT NULL,
	amount  double precision NOT NULL,
	reading double precision NOT NULL, -- of the agent's counter
	mark    text COLLATE "C" NOT NULL,
	PRIMARY KEY (owner, key),
	FOREIGN KEY (owner, id) REFERENCES sessions ON DELETE CASCADE,
	FOREIGN KEY (owner, agent) REFERENCES agents
);
CREATE INDEX charges_of      ON charges (owner, id, meter, unit, key);
CREATE INDEX charges_by_time ON charges (owner, at);

-- Nobody knows what these sessions have used before. The migration names no owner, so it needs a
-- moment without the policies; nobody else sees that.
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
INSERT INTO charges (owner, id, agent, at, source, meter, unit, amount, reading, mark)
	SELECT owner, id, agent, updated, '', 'cost', '', 0, 0, 'before' FROM sessions WHERE turns > 0;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;

ALTER TABLE charges ENABLE ROW LEVEL SECURITY;
ALTER TABLE charges FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON charges USING (owner = (SELECT CASE WHEN
	current_setting('acp_agent.owner', true) LIKE 'owner %'
	THEN substr(current_setting('acp_agent.owner', true), 7) END));

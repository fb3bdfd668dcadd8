-- What sessions have used, as their agents report it. A program of version 10 adds nothing here, and
-- deletes what belongs to the sessions that it deletes.
CREATE TABLE charges (
	key     INTEGER PRIMARY KEY, -- greater than those that were added before
	session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
	agent   INTEGER NOT NULL REFERENCES agents,
	at      INTEGER NOT NULL,
	source  TEXT    NOT NULL, -- names the agent's own session whose counter was read
	meter   TEXT    NOT NULL,
	unit    TEXT    NOT NULL,
	amount  REAL    NOT NULL,
	reading REAL    NOT NULL, -- of the agent's counter
	mark    TEXT    NOT NULL
) STRICT;
CREATE INDEX charges_of      ON charges (session, meter, unit, key);
CREATE INDEX charges_by_time ON charges (agent, at);

-- Nobody knows what these sessions have used before.
INSERT INTO charges (session, agent, at, source, meter, unit, amount, reading, mark)
	SELECT key, agent, updated, '', 'cost', '', 0, 0, 'before' FROM sessions WHERE turns > 0;

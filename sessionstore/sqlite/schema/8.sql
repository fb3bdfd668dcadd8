-- From this version on the sessions of a principal are here too. The ids of its sessions and the kinds of its agents
-- begin with its name and the byte FF, which valid text does not contain. Others belong to the local user. So each
-- index separates owners, and a program of an older version may use the file while it has no principal's sessions.
-- Its limit of tombstones is each agent's.
CREATE INDEX tombstones_of ON tombstones (agent, deleted);
DROP INDEX tombstones_by_age;

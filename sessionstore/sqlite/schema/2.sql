-- What the agent behind us itself calls a session, where it has sessions of its own.
CREATE TABLE runtime_keys (
	session  INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
	agent    INTEGER NOT NULL REFERENCES agents,
	name     TEXT    NOT NULL,
	imported INTEGER NOT NULL, -- 1 if the session came from the agent's own list, and so is more than its history here
	UNIQUE (agent, name)
) STRICT;

-- Sessions that were deleted here, and which the agent may still list.
CREATE TABLE tombstones (
	agent   INTEGER NOT NULL REFERENCES agents,
	name    BLOB    NOT NULL, -- SHA-256 of runtime_keys.name: a deleted session leaves nothing readable
	deleted INTEGER NOT NULL, -- or last listed by the agent
	PRIMARY KEY (agent, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstones_by_age ON tombstones (deleted);

-- Histories that are being made, and are to replace a session's: segments of a strand that no session has yet. They
-- refer to nothing, so that those of a session that an older program deletes are still found.
CREATE TABLE drafts (
	strand  INTEGER PRIMARY KEY,
	session INTEGER NOT NULL,
	started INTEGER NOT NULL
) STRICT;

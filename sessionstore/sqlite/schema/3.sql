-- What clients and the agent's own list say about a session.
CREATE TABLE labels (
	session  INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
	archived INTEGER NOT NULL DEFAULT 0,
	renamed  INTEGER NOT NULL DEFAULT 0, -- 1 if a client set the title
	meta     TEXT    NOT NULL DEFAULT '' -- _meta of the session in the agent's list, as JSON
) STRICT;

-- Which lists show the session: 0 ordinary ones, 1 those of archived sessions. 2 is an unused session, which lists may leave out:
-- it has no turn and no history, and is not in the agent's own list. Triggers keep it right, also for older programs.
ALTER TABLE sessions ADD COLUMN listing INTEGER NOT NULL DEFAULT 2;
UPDATE sessions SET listing = 0 WHERE turns > 0 OR last > 0 OR key IN (SELECT session FROM runtime_keys WHERE imported);

CREATE TRIGGER got_inherited_history AFTER INSERT ON inherits BEGIN
	UPDATE sessions SET listing = 0 WHERE key = NEW.session AND listing = 2;
END;
CREATE TRIGGER got_history AFTER UPDATE OF turns, last ON sessions WHEN OLD.listing = 2 AND (NEW.turns > 0 OR NEW.last > 0) BEGIN
	UPDATE sessions SET listing = 0 WHERE key = NEW.key;
END;
CREATE TRIGGER inserted_as_imported AFTER INSERT ON runtime_keys WHEN NEW.imported BEGIN
	UPDATE sessions SET listing = 0 WHERE key = NEW.session AND listing = 2;
END;
CREATE TRIGGER imported AFTER UPDATE OF imported ON runtime_keys WHEN NEW.imported BEGIN
	UPDATE sessions SET listing = 0 WHERE key = NEW.session AND listing = 2;
END;
CREATE TRIGGER inserted_as_archived AFTER INSERT ON labels WHEN NEW.archived BEGIN
	UPDATE sessions SET listing = 1 WHERE key = NEW.session;
END;
CREATE TRIGGER archived AFTER UPDATE OF archived ON labels WHEN NEW.archived <> OLD.archived BEGIN
	UPDATE sessions SET listing = CASE
		WHEN NEW.archived THEN 1
		WHEN turns > 0 OR last > 0 OR EXISTS (SELECT 1 FROM runtime_keys WHERE session = NEW.session AND imported) THEN 0
		ELSE 2 END
	WHERE key = NEW.session;
END;

-- The indexes keep their names, by which older programs ask for them: those sort the rows of an agent and cwd.
DROP INDEX by_activity;
DROP INDEX by_cwd;
DROP INDEX by_real_cwd;
DROP INDEX by_dirs;
DROP INDEX by_real_dirs;
DROP INDEX by_cwd_dirs;
DROP INDEX by_cwd_real_dirs;
DROP INDEX by_real_cwd_dirs;
DROP INDEX by_real_cwd_real_dirs;
CREATE INDEX by_activity           ON sessions (agent, listing, updated DESC, id DESC);
CREATE INDEX by_cwd                ON sessions (agent, cwd_hash, listing, updated DESC, id DESC);
CREATE INDEX by_real_cwd           ON sessions (agent, real_cwd_hash, listing, updated DESC, id DESC);
CREATE INDEX by_dirs               ON sessions (agent, dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_real_dirs          ON sessions (agent, real_dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_cwd_dirs           ON sessions (agent, cwd_hash, dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_cwd_real_dirs      ON sessions (agent, cwd_hash, real_dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_real_cwd_dirs      ON sessions (agent, real_cwd_hash, dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_real_cwd_real_dirs ON sessions (agent, real_cwd_hash, real_dirs_hash, listing, updated DESC, id DESC);

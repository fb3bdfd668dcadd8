-- When the agent listed the session first, 0 if it never has.
ALTER TABLE runtime_keys ADD COLUMN listed INTEGER NOT NULL DEFAULT 0;
UPDATE runtime_keys SET listed = 1 WHERE imported;

-- A listing of 3 is a session that its agent no longer lists. It is an ordinary one again when the agent
-- lists it, when it is prompted, and when the agent has another name for it.
CREATE TRIGGER prompted_again AFTER UPDATE OF turns ON sessions WHEN OLD.listing = 3 AND NEW.turns > OLD.turns BEGIN
	UPDATE sessions SET listing = 0 WHERE key = NEW.key;
	UPDATE runtime_keys SET listed = 0 WHERE session = NEW.key;
END;
CREATE TRIGGER named_again AFTER UPDATE OF name ON runtime_keys WHEN NEW.name <> OLD.name BEGIN
	UPDATE runtime_keys SET listed = 0 WHERE session = NEW.session;
	UPDATE sessions SET listing = 0 WHERE key = NEW.session AND listing = 3;
END;

-- A session that its agent no longer lists is listed here as before. In runtime_keys it has its time
-- of listing negated, until the agent lists it, has another name for it, or it is prompted.
UPDATE runtime_keys SET listed = -listed WHERE session IN (SELECT key FROM sessions WHERE listing = 3);
UPDATE sessions SET listing = coalesce((SELECT archived FROM labels WHERE session = sessions.key), 0)
	WHERE listing = 3;
DROP TRIGGER prompted_again;
CREATE TRIGGER prompted_again AFTER UPDATE OF turns ON sessions WHEN NEW.turns > OLD.turns BEGIN
	UPDATE runtime_keys SET listed = 0 WHERE session = NEW.key AND listed < 0;
END;

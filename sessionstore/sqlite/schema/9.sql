-- What searches find: the messages of histories. A long message is several passages. Between two characters of
-- writing without spaces, which each are a word, body has the character 1.
CREATE TABLE passages (
	key    INTEGER PRIMARY KEY, -- greater than those that were added before
	strand INTEGER NOT NULL,
	seq    INTEGER NOT NULL, -- the segment in which it begins, with which it is deleted
	said   INTEGER NOT NULL, -- the time of the session's last activity when it was added, 0 if unknown
	role   TEXT    NOT NULL,
	body   TEXT    NOT NULL
) STRICT;
CREATE INDEX passages_of ON passages (strand, seq);

CREATE VIRTUAL TABLE words USING fts5(body, content = 'passages', content_rowid = 'key', columnsize = 0,
	tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co So'");
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
	INSERT INTO words (rowid, body) VALUES (NEW.key, NEW.body);
END;
CREATE TRIGGER passage_deleted AFTER DELETE ON passages BEGIN
	INSERT INTO words (words, rowid, body) VALUES ('delete', OLD.key, OLD.body);
END;

-- Strands whose passages are not, or not all, in the table yet. Triggers note them, also for older programs.
CREATE TABLE unindexed (
	strand INTEGER PRIMARY KEY,
	after  INTEGER NOT NULL, -- the segment after which passages are to be made again
	seen   INTEGER NOT NULL  -- the last segment of which there are passages
) STRICT;
INSERT INTO unindexed SELECT strand, 0, 0 FROM sessions WHERE last > 0 UNION SELECT strand, 0, 0 FROM inherits;

CREATE TRIGGER segment_added AFTER INSERT ON segments BEGIN
	INSERT INTO unindexed VALUES (NEW.strand, NEW.seq - 1, NEW.seq - 1) ON CONFLICT (strand) DO UPDATE
		SET after = excluded.after, seen = excluded.seen WHERE excluded.after < after;
END;
CREATE TRIGGER segment_deleted AFTER DELETE ON segments BEGIN
	DELETE FROM passages WHERE strand = OLD.strand AND seq = OLD.seq;
END;
CREATE TRIGGER strand_deleted AFTER DELETE ON dropped BEGIN
	DELETE FROM unindexed WHERE strand = OLD.strand AND NOT EXISTS (SELECT 1 FROM segments WHERE strand = OLD.strand);
END;

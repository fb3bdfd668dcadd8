-- What only a SQLite file has besides the tables of every database.

-- The numbers that were handed out, and whether deleted data may have left traces in the file.
CREATE TABLE numbers (
	last   INTEGER NOT NULL,
	traces INTEGER NOT NULL
) STRICT;
INSERT INTO numbers VALUES (0, 0);

-- Between two characters of writing without spaces, which each are a word, body has the character 1.
CREATE VIRTUAL TABLE words USING fts5(body, content = 'passages', content_rowid = 'key', columnsize = 0,
	tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co So'");
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
	INSERT INTO words (rowid, body) VALUES (NEW.key, NEW.body);
END;
CREATE TRIGGER passage_deleted AFTER DELETE ON passages BEGIN
	INSERT INTO words (words, rowid, body) VALUES ('delete', OLD.key, OLD.body);
END;
CREATE TRIGGER purged AFTER DELETE ON drafts BEGIN
	UPDATE numbers SET traces = 1;
END;

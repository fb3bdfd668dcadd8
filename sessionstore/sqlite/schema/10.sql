-- The schema of the first release. A later version is a further file with the statements that change
-- this one; programs of this version must still be able to use the file, unless "oldest" says
-- otherwise.

-- What the file says of itself, in one row. Every version of the program reads "oldest".
CREATE TABLE meta (
	one         INTEGER PRIMARY KEY CHECK (one = 1),
	oldest      INTEGER NOT NULL, -- programs that know this schema version, or a newer one, may read and write the file
	generations INTEGER NOT NULL, -- the last generation that was handed out
	-- The number of deletes, and of those of which nothing is left in the file and its log. A program
	-- that is killed in between leaves the rest to the next one.
	deletes     INTEGER NOT NULL DEFAULT 0,
	erased      INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO meta (one, oldest, generations) VALUES (1, 1, 0);

-- The ids of a principal's sessions and the kinds of its agents begin with the principal's name and
-- the byte FF, which valid text does not contain. Others belong to the local user. So each index
-- separates owners.
CREATE TABLE agents (
	key     INTEGER PRIMARY KEY,
	kind    TEXT NOT NULL,
	profile TEXT NOT NULL,
	UNIQUE (kind, profile)
) STRICT;

-- Times are milliseconds since 1970, UTC. Lists of directories are JSON arrays of strings. A *_hash is
-- the FNV-1a of its column, so that an index entry is small however long the list is.
CREATE TABLE sessions (
	key            INTEGER PRIMARY KEY,
	id             TEXT    NOT NULL UNIQUE,
	agent          INTEGER NOT NULL REFERENCES agents,
	cwd            TEXT    NOT NULL,
	dirs           TEXT    NOT NULL,
	real_cwd       TEXT    NOT NULL,
	real_dirs      TEXT    NOT NULL,
	cwd_hash       INTEGER NOT NULL,
	dirs_hash      INTEGER NOT NULL,
	real_cwd_hash  INTEGER NOT NULL,
	real_dirs_hash INTEGER NOT NULL,
	title          TEXT    NOT NULL,
	created        INTEGER NOT NULL,
	updated        INTEGER NOT NULL,
	generation     INTEGER NOT NULL,
	turns          INTEGER NOT NULL, -- that were begun
	open           INTEGER NOT NULL, -- the first segment of the running turn, 0 between turns
	strand         INTEGER NOT NULL UNIQUE, -- where its own segments are; never used by another session
	last           INTEGER NOT NULL, -- its last segment, or the last one it inherited, or 0
	-- Which lists show the session: 0 ordinary ones, 1 those of archived sessions. 2 is an unused
	-- session, which lists may leave out: it has no turn and no history, and is not in the agent's own
	-- list. Triggers keep it right.
	listing        INTEGER NOT NULL DEFAULT 2
) STRICT;

-- One index for each combination of filters and keys.
CREATE INDEX by_activity           ON sessions (agent, listing, updated DESC, id DESC);
CREATE INDEX by_cwd                ON sessions (agent, cwd_hash, listing, updated DESC, id DESC);
CREATE INDEX by_real_cwd           ON sessions (agent, real_cwd_hash, listing, updated DESC, id DESC);
CREATE INDEX by_dirs               ON sessions (agent, dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_real_dirs          ON sessions (agent, real_dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_cwd_dirs           ON sessions (agent, cwd_hash, dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_cwd_real_dirs      ON sessions (agent, cwd_hash, real_dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_real_cwd_dirs      ON sessions (agent, real_cwd_hash, dirs_hash, listing, updated DESC, id DESC);
CREATE INDEX by_real_cwd_real_dirs ON sessions (agent, real_cwd_hash, real_dirs_hash, listing, updated DESC, id DESC);

-- The runtime's own value. It has its own table, since the session's row is written with every segment.
CREATE TABLE runtime_states (
	session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
	body    BLOB NOT NULL
) STRICT;

-- What the agent behind us itself calls a session, where it has sessions of its own.
CREATE TABLE runtime_keys (
	session  INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
	agent    INTEGER NOT NULL REFERENCES agents,
	name     TEXT    NOT NULL,
	imported INTEGER NOT NULL, -- 1 if the session came from the agent's own list, and so is more than its history here
	-- When the agent listed the session first, 0 if it never has. It is negated once the agent no
	-- longer lists the session, until the agent lists it or has another name for it, or it is prompted.
	listed   INTEGER NOT NULL DEFAULT 0,
	UNIQUE (agent, name)
) STRICT;

-- What clients and the agent's own list say about a session.
CREATE TABLE labels (
	session  INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
	archived INTEGER NOT NULL DEFAULT 0,
	renamed  INTEGER NOT NULL DEFAULT 0, -- 1 if a client set the title
	meta     TEXT    NOT NULL DEFAULT '' -- _meta of the session in the agent's list, as JSON
) STRICT;

-- The turns that are running, or were when their program ended.
CREATE TABLE turns (
	session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
	number  INTEGER NOT NULL,
	started INTEGER NOT NULL,
	PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

-- A group of updates, one a line, and then their checksum. The history of a session is what it inherits, then its own strand.
CREATE TABLE segments (
	strand  INTEGER NOT NULL,
	seq     INTEGER NOT NULL, -- counts through the history of the strand's session, from 1
	turn    INTEGER NOT NULL, -- the turn it came in, 0 between turns
	updates INTEGER NOT NULL, -- in body
	body    BLOB    NOT NULL,
	PRIMARY KEY (strand, seq)
) STRICT;

-- A fork shares its source's segments instead of copying them: those of strand that come after the ones
-- inherited before it, up to last. Segments that no session needs any more are deleted at once.
CREATE TABLE inherits (
	session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
	last    INTEGER NOT NULL,
	strand  INTEGER NOT NULL,
	PRIMARY KEY (session, last)
) STRICT, WITHOUT ROWID;
CREATE INDEX inherited ON inherits (strand, last);

CREATE TABLE states (
	session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
	kind    TEXT    NOT NULL,
	body    BLOB    NOT NULL,
	PRIMARY KEY (session, kind)
) STRICT, WITHOUT ROWID;

-- Sessions that were deleted here, and which the agent may still list.
CREATE TABLE tombstones (
	agent   INTEGER NOT NULL REFERENCES agents,
	name    BLOB    NOT NULL, -- SHA-256 of runtime_keys.name: a deleted session leaves nothing readable
	deleted INTEGER NOT NULL, -- or last listed by the agent
	PRIMARY KEY (agent, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstones_of ON tombstones (agent, deleted);

-- Parts of histories that are being made, and are to be added to a session's: segments of a strand that no session has yet.
CREATE TABLE drafts (
	strand  INTEGER PRIMARY KEY,
	session INTEGER NOT NULL,
	started INTEGER NOT NULL
) STRICT;

-- Strands whose sessions or drafts were deleted. Their segments are deleted afterwards, in pieces,
-- except those that a fork inherits.
CREATE TABLE dropped (strand INTEGER PRIMARY KEY) STRICT;

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
CREATE TRIGGER prompted_again AFTER UPDATE OF turns ON sessions WHEN NEW.turns > OLD.turns BEGIN
	UPDATE runtime_keys SET listed = 0 WHERE session = NEW.key AND listed < 0;
END;
CREATE TRIGGER named_again AFTER UPDATE OF name ON runtime_keys WHEN NEW.name <> OLD.name BEGIN
	UPDATE runtime_keys SET listed = 0 WHERE session = NEW.session;
END;

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

-- Strands whose passages are not, or not all, in the table yet. Triggers note them.
CREATE TABLE unindexed (
	strand INTEGER PRIMARY KEY,
	after  INTEGER NOT NULL, -- the segment after which passages are to be made again
	seen   INTEGER NOT NULL  -- the last segment of which there are passages
) STRICT;

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

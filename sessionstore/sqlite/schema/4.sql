-- The number of deletes, and of those of which nothing is left in the file and its log. A program
-- that is killed in between leaves the rest to the next one.
ALTER TABLE meta ADD COLUMN deletes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN erased  INTEGER NOT NULL DEFAULT 0;

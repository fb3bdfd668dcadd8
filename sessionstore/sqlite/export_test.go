package sqlite

import (
	"context"
	"time"
)

// The journal modes, for external tests.
const (
	JournalWAL      = journalWAL
	JournalRollback = journalRollback
)

// LockFile locks the file that programs lock while they open or repair a store.
var LockFile = lockFile

// Journal is a journal mode.
type Journal = journal

// WithJournal returns o with a journal mode.
func (o Options) WithJournal(j Journal) Options {
	o.journal = j
	return o
}

// WithEraseDelay returns o with another time between a delete and erasing its copies.
func (o Options) WithEraseDelay(d time.Duration) Options {
	o.eraseDelay = d
	return o
}

// WithLockTimeout returns o with calls that soon give up on a locked store.
func (o Options) WithLockTimeout() Options {
	o.lockTimeout = time.Millisecond
	return o
}

// Erased reports whether nothing is left of deleted sessions.
func (s *Store) Erased() bool {
	var erased bool
	err := s.use(context.Background(), func(db *database) error {
		return db.reader.QueryRow("SELECT deletes = erased AND NOT EXISTS (SELECT 1 FROM dropped) FROM meta").Scan(&erased)
	})
	return err == nil && erased
}

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

// Journal is a journal mode.
type Journal = journal

// WithJournal returns o with a journal mode.
func (o Options) WithJournal(j Journal) Options {
	o.journal = j
	return o
}

// WithPurgeDelay returns o with another time between a delete and the purging of its data.
func (o Options) WithPurgeDelay(d time.Duration) Options {
	o.purgeDelay = d
	return o
}

// WithLockTimeout returns o with calls that soon give up on a locked store.
func (o Options) WithLockTimeout() Options {
	o.lockTimeout = time.Millisecond
	return o
}

// Purged reports whether no row is left of deleted sessions.
func (s *Store) Purged() bool {
	var left int
	err := s.core.Use(context.Background(), func() error {
		return s.file.reader.QueryRow("SELECT count(*) FROM drafts WHERE started = 0").Scan(&left)
	})
	return err == nil && left == 0
}

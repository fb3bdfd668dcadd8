package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// retentionEvery is how often the store is pruned by itself, among all processes that use it.
	retentionEvery = 24 * time.Hour
	// retentionTime bounds how long a program that ends is held up by it.
	retentionTime = time.Second
)

// retain prunes what Options.Retention lets go. It is done when the store is closed, since nobody waits then:
// not on the way to the first answer, and not by a goroutine of its own that would compete with requests. A
// program that is killed leaves it to the next one. Whatever fails is left to another day.
func (s *Store) retain() {
	if s.options.Retention <= 0 || !s.opened() || !s.dueForRetention() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), retentionTime)
	defer cancel()
	_, _ = s.Prune(ctx, sessionstore.PruneQuery{UnusedBefore: s.options.Now().Add(-s.options.Retention)})
}

// opened reports whether a call has opened the file.
func (s *Store) opened() bool {
	s.using.RLock()
	defer s.using.RUnlock()
	select {
	case <-s.opening:
		defer func() { s.opening <- struct{}{} }()
		return s.db != nil
	default:
		return false
	}
}

// dueForRetention reports whether no program has pruned the store for long enough, and notes that this one
// does. The time of the last one is the modification time of the lock file, in which nothing is ever written.
func (s *Store) dueForRetention() bool {
	path, now := filepath.Join(s.options.Dir, lockFileName), s.options.Now()
	info, err := os.Stat(path)
	if err != nil || now.Sub(info.ModTime()) < retentionEvery {
		return false
	}
	return os.Chtimes(path, time.Time{}, now) == nil
}

package sessionstore

import "time"

// Retention is how long the program keeps sessions that were never prompted.
const Retention = 30 * 24 * time.Hour

// PruneQuery says which sessions [Store.Prune] removes: those that either bound matches. The zero value
// matches none.
//
// A session's age is that of its last activity (Updated), which opening it is not. So a session that is open in a
// window, but older than the bound, is removed under it, and its lease is answered as that of a deleted
// session. With bounds of weeks that is worth less than knowing of every window.
type PruneQuery struct {
	// UnusedBefore matches sessions without activity since this time in which nothing was ever said: no turn was
	// begun, the history is empty, and it was not imported. The zero time matches none.
	UnusedBefore time.Time
	// Before matches all sessions without activity since this time. The zero time matches none.
	Before time.Time
	// DryRun counts the sessions, and removes nothing.
	DryRun bool
}

// Bounds are the bounds as stores compare them with Updated: exclusive, in milliseconds since 1970 UTC, and 0
// for none.
func (q PruneQuery) Bounds() (unused, all int64) { return bound(q.UnusedBefore), bound(q.Before) }

func bound(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

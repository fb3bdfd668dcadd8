package sessionstore

import (
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// PageSize is the number of sessions in a page when the query names none, and
// MaxPageSize the most that one can ask for.
const (
	PageSize    = 50
	MaxPageSize = 1000
)

// Query is what a list asks for. The zero value of a filter filters nothing.
type Query struct {
	// Agent, if its Kind is not empty, matches the sessions of exactly this agent.
	Agent Agent
	// Cwd, if not nil, matches sessions of that working directory.
	Cwd *DirFilter
	// Additional, if not nil, matches sessions whose additional roots are exactly this
	// list, in this order; an empty list matches those without any (A16).
	Additional *DirsFilter
	// Cursor continues a list, "" starts one.
	Cursor Cursor
	// Limit is the most sessions in the page; 0 means PageSize, and more than MaxPageSize means that.
	Limit int
}

// Size is the most sessions that the query's page may hold, by the rule of Limit.
func (q Query) Size() int {
	if q.Limit <= 0 {
		return PageSize
	}
	return min(q.Limit, MaxPageSize)
}

// DirFilter is a directory by both keys (A17): a session matches if its spelling equals
// Spelling, or the real path on record equals Real.
type DirFilter struct {
	Spelling workspace.Dir
	// Real is Spelling's real path now, or Spelling itself where that does not exist.
	Real workspace.Dir
}

// DirsFilter is an ordered list by both keys; the whole list matches by one key or the other.
type DirsFilter struct {
	Spelling workspace.Dirs
	// Real has an entry for each of Spelling, by the rule of DirFilter.
	Real []workspace.Dir
}

// Cursor is where a list goes on: opaque, bound to the filters it was made with.
type Cursor string

// Page is a part of a list.
type Page struct {
	// Sessions is not nil. Their State and StateKey are left out.
	Sessions []Session
	// Next is "" at the end.
	Next Cursor
}

// FilterDir is a filter by one directory, whose real path is looked up now.
func FilterDir(d workspace.Dir) *DirFilter {
	return &DirFilter{Spelling: d, Real: workspace.Real(d)}
}

// FilterDirs is a filter by an ordered list, whose real paths are looked up now.
func FilterDirs(dirs workspace.Dirs) *DirsFilter {
	f := &DirsFilter{Spelling: dirs}
	for _, d := range dirs.All() {
		f.Real = append(f.Real, workspace.Real(d))
	}
	return f
}

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

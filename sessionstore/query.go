package sessionstore

import "github.com/acp-agent/acp-agent/workspace"

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

package sessionstore

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

const (
	// PageSize is the default size of a page, MaxPageSize the maximum.
	PageSize    = 50
	MaxPageSize = 1000
	// Retention is how long the program keeps sessions that were never prompted.
	Retention = 30 * 24 * time.Hour
)

// Query selects sessions. A filter with its zero value matches all sessions.
type Query struct {
	// Agent, if its Kind is not "", matches the sessions of exactly this agent.
	Agent Agent
	// Cwd matches sessions with this working directory.
	Cwd *DirFilter
	// Additional matches sessions whose additional roots are exactly this list, in this order. An
	// empty list matches sessions without any.
	Additional *DirsFilter
	// Archive selects archived sessions, other sessions, or both.
	Archive ArchiveFilter
	// Unused leaves out unused sessions.
	Unused UnusedFilter
	// Cursor continues a list; "" starts one.
	Cursor Cursor
	// Limit is the maximum number of sessions in the page; 0 means [PageSize]. It is limited to
	// [MaxPageSize].
	Limit int
}

// Size returns the maximum number of sessions in the query's page.
func (q Query) Size() int {
	if q.Limit <= 0 {
		return PageSize
	}
	return min(q.Limit, MaxPageSize)
}

// ArchiveFilter selects sessions by whether they are archived.
type ArchiveFilter int

// All archive filters.
const (
	ArchivedToo ArchiveFilter = iota
	WithoutArchived
	OnlyArchived
)

// UnusedGrace is how long a session may be unused before lists leave it out. An imported session
// counts as used if its agent reports activity more than this after its creation.
const UnusedGrace = time.Minute

// UnusedFilter leaves out unused sessions: no turn was started, the history is empty, and the
// session was not imported. Archived sessions are never left out.
type UnusedFilter struct {
	// Before leaves out sessions without activity since then. The zero time leaves out none.
	Before time.Time
	// Keep are open sessions, which are never left out.
	Keep []ID
}

// DirFilter matches a session if its directory is spelled as Spelling, or its recorded real path is
// Real.
type DirFilter struct {
	Spelling workspace.Dir
	// Real is the real path of Spelling now, or Spelling itself if it does not exist.
	Real workspace.Dir
}

// FilterDir returns a filter for d. It looks up the real path of d.
func FilterDir(d workspace.Dir) *DirFilter {
	return &DirFilter{Spelling: d, Real: workspace.Real(d)}
}

// DirsFilter matches a session if its whole list is spelled as Spelling, or all its recorded real
// paths are Real.
type DirsFilter struct {
	Spelling workspace.Dirs
	// Real has an entry for each of Spelling, as in [DirFilter].
	Real []workspace.Dir
}

// FilterDirs returns a filter for dirs. It looks up their real paths.
func FilterDirs(dirs workspace.Dirs) *DirsFilter {
	f := &DirsFilter{Spelling: dirs}
	for _, d := range dirs.All() {
		f.Real = append(f.Real, workspace.Real(d))
	}
	return f
}

// Page is a part of a list.
type Page struct {
	// Sessions is not nil. Their State and StateKey are not set.
	Sessions []Session
	// Next is "" on the last page.
	Next Cursor
}

// PruneQuery selects the sessions that [Store.Prune] deletes: those that match either bound. The
// zero value matches none.
//
// The age of a session is that of its last activity (Updated); opening it is not activity. A
// session that is open in a window but older than the bound is deleted, and the window's next write
// fails with [*NotFoundError].
type PruneQuery struct {
	// UnusedBefore matches unused sessions without activity since then: no turn was started, the
	// history is empty, and the session was not imported. The zero time matches none.
	UnusedBefore time.Time
	// Before matches all sessions without activity since then. The zero time matches none.
	Before time.Time
	// DryRun only counts the sessions.
	DryRun bool
}

// Cursor is an opaque position in a list. It is valid only with the filters for which it was made.
type Cursor string

// Position is the position of a session in a list.
type Position struct {
	Updated time.Time
	ID      ID
}

// Compare returns a negative number if a session at p is listed before one at other: later activity
// comes first, then the greater id.
func (p Position) Compare(other Position) int {
	return cmp.Or(other.Updated.Compare(p.Updated), cmp.Compare(other.ID, p.ID))
}

// cursorHead is the length of a cursor without its id, before it is encoded as base64url: it begins
// with a digest of the filters and the position's time in milliseconds.
const digestSize, cursorHead = 8, 8 + 8

// After returns the cursor of q's list that continues after p.
func (q Query) After(p Position) Cursor {
	raw := binary.BigEndian.AppendUint64(q.digest(), uint64(p.Updated.UnixMilli()))
	return Cursor(base64.RawURLEncoding.EncodeToString(append(raw, p.ID...)))
}

// From returns the position after which q's page starts. At the start of the list it is before all
// sessions. The error is a [*CursorError].
func (q Query) From() (Position, error) {
	if q.Cursor == "" {
		return Position{Updated: time.UnixMilli(math.MaxInt64)}, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(q.Cursor))
	if err != nil || len(raw) < cursorHead || !bytes.Equal(raw[:digestSize], q.digest()) ||
		ID(raw[cursorHead:]).Validate() != nil {
		return Position{}, &CursorError{Cursor: q.Cursor}
	}
	ms := int64(binary.BigEndian.Uint64(raw[digestSize:cursorHead]))
	return Position{Updated: time.UnixMilli(ms).UTC(), ID: ID(raw[cursorHead:])}, nil
}

// digest identifies q's filters. It leaves out real paths and the filter for unused sessions, so
// that a cursor stays valid if a link or the time changes between two pages.
func (q Query) digest() []byte {
	filters := []any{q.Agent, q.Archive, nil, nil}
	if q.Cwd != nil {
		filters[2] = q.Cwd.Spelling.String()
	}
	if q.Additional != nil {
		filters[3] = append([]string{}, q.Additional.Spelling.Strings()...)
	}
	text, err := json.Marshal(filters)
	if err != nil {
		panic("sessionstore: filters cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return sum[:digestSize:digestSize]
}

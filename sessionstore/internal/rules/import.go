package rules

import (
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// comparedSessions is the number of listed sessions that are compared with the store at once,
	// and importedSessions the number that are stored in one transaction.
	comparedSessions = 2000
	importedSessions = 250
	// tombstoneRenewal is the age at which a store renews its memory of a deleted session that its
	// agent still lists. Earlier renewals would make each import of an unchanged list write.
	tombstoneRenewal = 24 * time.Hour
	// maxAhead is how far a time may be in the future because clocks differ.
	maxAhead = 24 * time.Hour
)

// Known is what a store has recorded about a session that its agent lists. Times are milliseconds
// since 1970, UTC. The zero value is an unknown session.
type Known struct {
	Stored           bool
	Created, Updated int64
	Title, Meta      string
	Renamed          bool
	Unused           bool  // as in [sessionstore.UnusedFilter]
	Listed           int64 // when its agent listed it here, negative if it no longer does
	Cwd, RealCwd     string
	Deleted          int64 // when it was deleted or given up; then nothing else is set
}

// Rows reads and writes the sessions of one agent for an import, in one transaction.
type Rows interface {
	// Now returns the time.
	Now() (int64, error)
	// Known returns what is recorded about the sessions with these state keys, by state key.
	Known(stateKeys []string) (map[string]Known, error)
	// First returns the first updates of the histories of sessions that Known found.
	First(stateKeys []string) (map[string][]sessionstore.Update, error)
	// Insert stores a new session.
	Insert(n sessionstore.Imported, k Known) error
	// Update stores what differs between two records of a session or its tombstone.
	Update(n sessionstore.Imported, before, after Known) error
}

// Import imports sessions a few at a time, and returns the number of new ones. It calls compare,
// which locks nothing, for those that are [Outdated], and store to [Store] these in a transaction.
func Import(
	agent sessionstore.Agent, sessions []sessionstore.Imported,
	compare func([]sessionstore.Imported) ([]sessionstore.Imported, error),
	store func([]sessionstore.Imported) (added int, err error),
) (added int, err error) {
	if err := agent.Validate(); err != nil {
		return 0, err
	}
	for _, n := range sessions {
		if err := n.Validate(); err != nil {
			return 0, err
		}
	}
	for some := range slices.Chunk(sessions, comparedSessions) {
		outdated, err := compare(some)
		if err != nil {
			return added, err
		}
		for piece := range slices.Chunk(outdated, importedSessions) {
			n, err := store(piece)
			if err != nil {
				return added, err
			}
			added += n
		}
	}
	return added, nil
}

// Outdated returns the sessions that importing would change. Usually there are none.
func Outdated(
	rows Rows, sessions []sessionstore.Imported,
) (outdated []sessionstore.Imported, err error) {
	l, err := look(rows, sessions)
	if err != nil {
		return nil, err
	}
	for _, n := range sessions {
		if before := l.known[n.StateKey]; l.imported(n) != before {
			outdated = append(outdated, n)
		}
	}
	return outdated, nil
}

// Store stores sessions, and returns the number of new ones.
func Store(
	rows Rows, sessions []sessionstore.Imported,
) (added int, err error) {
	l, err := look(rows, sessions)
	if err != nil {
		return 0, err
	}
	for _, n := range sessions {
		before, after := l.known[n.StateKey], l.imported(n)
		switch {
		case after == before:
		case before == Known{}:
			added++
			err = rows.Insert(n, after)
		default:
			err = rows.Update(n, before, after)
		}
		if err != nil {
			return 0, err
		}
		l.known[n.StateKey] = after // a list may have it twice
	}
	return added, nil
}

// looked is what a store has recorded about the sessions of a list.
type looked struct {
	known map[string]Known
	first map[string][]sessionstore.Update
	now   int64
}

func look(
	rows Rows, sessions []sessionstore.Imported,
) (l looked, err error) {
	names := make([]string, len(sessions))
	for i, n := range sessions {
		names[i] = n.StateKey
	}
	if l.known, err = rows.Known(names); err != nil {
		return l, err
	}
	if l.now, err = rows.Now(); err != nil {
		return l, err
	}
	var retitled []string
	for _, n := range sessions {
		if l.known[n.StateKey].mayRetitle(n) {
			retitled = append(retitled, n.StateKey)
		}
	}
	if len(retitled) > 0 {
		l.first, err = rows.First(retitled)
	}
	return l, err
}

// imported returns the record of a session once it is imported.
func (l looked) imported(n sessionstore.Imported) Known {
	return l.known[n.StateKey].imported(n, l.first[n.StateKey], l.now)
}

// imported returns k once n is imported. first are the first updates of the session's history.
func (k Known) imported(n sessionstore.Imported, first []sessionstore.Update, now int64) Known {
	switch {
	case k.Deleted != 0:
		if now-k.Deleted > tombstoneRenewal.Milliseconds() {
			k.Deleted = now
		}
		return k
	case !k.Stored && n.OnlyKnown:
		return k
	case !k.Stored:
		k = Adopted(n, now)
		k.Listed = now
		return k
	}
	if k.mayRetitle(n) {
		k.Title = importedTitle(n, k.Title, first)
	}
	k.Listed = k.listedAs(n, now)
	k.Unused = k.Unused && !k.usedSince(n)
	k.Meta = string(n.Meta)
	if updated := importedTime(n, now); updated != 0 {
		if isFuture(k.Updated, now) {
			k.Updated = updated
		}
		k.Updated = max(k.Updated, updated)
	}
	return k
}

// Adopted returns the record of a new session that its agent knows but has not listed.
func Adopted(n sessionstore.Imported, now int64) Known {
	k := Known{
		Stored: true, Title: sessionstore.CleanTitle(n.Title), Meta: string(n.Meta),
		Cwd: n.Keys.Roots.Cwd().String(), RealCwd: n.Keys.Real[0].String(), Updated: now,
	}
	if updated := importedTime(n, now); updated != 0 {
		k.Updated = updated
	}
	k.Created = k.Updated
	return k
}

// importedTime returns the time that an agent gives for the last activity of a session. It is 0 if
// there is none, or one in the future, with which the session would lead all lists until then.
func importedTime(n sessionstore.Imported, now int64) int64 {
	if n.Updated.IsZero() || isFuture(n.Updated.UnixMilli(), now) {
		return 0
	}
	return n.Updated.UnixMilli()
}

func isFuture(t, now int64) bool { return t-now > maxAhead.Milliseconds() }

// Active returns the time of a session's last activity, at updated before, that is active now.
func Active(updated, now int64) int64 {
	if isFuture(updated, now) {
		return now
	}
	return max(updated, now)
}

// MaxAhead is the difference in milliseconds at which Active replaces a time in the future.
func MaxAhead() int64 { return maxAhead.Milliseconds() }

// listedAs returns the value of Listed after n is imported. It is 0 for a session whose cwd differs
// here and in its agent, so that the session never counts as missing from a list.
func (k Known) listedAs(n sessionstore.Imported, now int64) int64 {
	cwd := n.Keys.Roots.Cwd().String()
	switch {
	case n.OnlyKnown:
		return k.Listed
	case cwd != k.Cwd && cwd != k.RealCwd:
		return 0
	case k.Listed <= 0:
		return now
	}
	return k.Listed
}

// usedSince reports whether n shows that a session which is unused here has been used in the agent.
func (k Known) usedSince(n sessionstore.Imported) bool {
	return k.Unused && !n.OnlyKnown && !n.Updated.IsZero() &&
		n.Updated.UnixMilli()-k.Created > sessionstore.UnusedGrace.Milliseconds()
}

// mayRetitle reports whether importing n may change the title. An unused session gets its title
// with its first prompt.
func (k Known) mayRetitle(n sessionstore.Imported) bool {
	return k.Stored && !k.Renamed && !k.Unused && n.Title != k.Title
}

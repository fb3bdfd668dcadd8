package core

import (
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// comparedSessions is the number of listed sessions that are compared with the store at once,
	// and importedSessions the number that are stored in one transaction.
	comparedSessions = 500
	importedSessions = 250
	// tombstoneRenewal is the age at which a store renews its memory of a deleted session that its
	// agent still lists. Earlier renewals would make each import of an unchanged list write.
	tombstoneRenewal = 24 * time.Hour
	// maxAhead is how far a time may be in the future because clocks differ.
	maxAhead = 24 * time.Hour
)

// known is what the store has recorded about a session that its agent lists. Times are milliseconds
// since 1970, UTC. The zero value is an unknown session.
type known struct {
	stored           bool
	created, updated int64
	title, meta      string
	renamed          bool
	unused           bool  // as in [sessionstore.UnusedFilter]
	listed           int64 // when its agent listed it here, negative if it no longer does
	cwd, realCwd     string
	deleted          int64 // when it was deleted or given up; then nothing else is set
	row              *row  // nil if it is not stored yet
}

// known returns what is recorded about a session.
func (r *row) known() known {
	return known{stored: true, created: r.created, updated: r.updated, title: r.title,
		meta: string(r.meta), renamed: r.renamed, listed: r.listed,
		unused: !r.imported && r.turns == 0 && r.last == 0,
		cwd:    r.cwd, realCwd: r.realCwd, row: r}
}

// imported returns k once n is imported. first are the first updates of the session's history.
func (k known) imported(n sessionstore.Imported, first []sessionstore.Update, now int64) known {
	switch {
	case k.deleted != 0:
		if now-k.deleted > tombstoneRenewal.Milliseconds() {
			k.deleted = now
		}
		return k
	case !k.stored && n.OnlyKnown:
		return k
	case !k.stored:
		k = adopted(n, now)
		k.listed = now
		return k
	}
	if k.mayRetitle(n) {
		k.title = importedTitle(n, k.title, first)
	}
	k.listed = k.listedAs(n, now)
	k.unused = k.unused && !k.usedSince(n)
	k.meta = string(n.Meta)
	if updated := importedTime(n, now); updated != 0 {
		if isFuture(k.updated, now) {
			k.updated = updated
		}
		k.updated = max(k.updated, updated)
	}
	return k
}

// adopted returns the record of a new session that its agent knows but has not listed.
func adopted(n sessionstore.Imported, now int64) known {
	k := known{
		stored: true, title: sessionstore.CleanTitle(n.Title), meta: string(n.Meta),
		cwd: n.Keys.Roots.Cwd().String(), realCwd: n.Keys.Real[0].String(), updated: now,
	}
	if updated := importedTime(n, now); updated != 0 {
		k.updated = updated
	}
	k.created = k.updated
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

// active returns the time of a session's last activity, at updated before, that is active now.
func active(updated, now int64) int64 {
	if isFuture(updated, now) {
		return now
	}
	return max(updated, now)
}

// listedAs returns the value of listed after n is imported. It is 0 for a session whose cwd differs
// here and in its agent, so that the session never counts as missing from a list.
func (k known) listedAs(n sessionstore.Imported, now int64) int64 {
	cwd := n.Keys.Roots.Cwd().String()
	switch {
	case n.OnlyKnown:
		return k.listed
	case cwd != k.cwd && cwd != k.realCwd:
		return 0
	case k.listed <= 0:
		return now
	}
	return k.listed
}

// usedSince reports whether n shows that a session which is unused here has been used in the agent.
func (k known) usedSince(n sessionstore.Imported) bool {
	return k.unused && !n.OnlyKnown && !n.Updated.IsZero() &&
		n.Updated.UnixMilli()-k.created > sessionstore.UnusedGrace.Milliseconds()
}

// mayRetitle reports whether importing n may change the title. An unused session gets its title
// with its first prompt.
func (k known) mayRetitle(n sessionstore.Imported) bool {
	return k.stored && !k.renamed && !k.unused && n.Title != k.title
}

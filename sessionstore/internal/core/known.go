package core

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxAhead is how far a time may be in the future because clocks differ.
const maxAhead = 24 * time.Hour

// importedTime returns the time that an agent gives for the last activity of a session. Without a
// time it returns known, and also for one in the future: the session would lead all lists until
// then.
func importedTime(n sessionstore.Session, now, known int64) int64 {
	if n.Updated.IsZero() || isFuture(n.Updated.UnixMilli(), now) {
		return known
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

// learn changes the row of a session as its agent lists it, and reports whether that changes
// anything. first has the updates with which the history begins. With onlyKnown the session counts
// neither as listed nor as imported.
func (r *row) learn(
	n sessionstore.Session, onlyKnown bool, first []sessionstore.Update, now int64,
) bool {
	before := *r
	if r.mayRetitle(n) {
		r.title = importedTitle(n, r.title, first)
	}
	if !onlyKnown {
		r.listed, r.gone = r.listedAs(n, now), false
		r.imported = r.imported || r.usedSince(n)
	}
	r.meta = n.Meta
	updated := importedTime(n, now, r.updated)
	if isFuture(r.updated, now) {
		r.updated = updated
	}
	r.updated = max(r.updated, updated)
	return r.title != before.title || r.listed != before.listed || r.gone != before.gone ||
		r.imported != before.imported || !bytes.Equal(r.meta, before.meta) ||
		r.updated != before.updated
}

// isUnused is as in [sessionstore.UnusedFilter].
func (r *row) isUnused() bool { return !r.imported && r.turns == 0 && r.last == 0 }

// listedAs returns the value of listed after n is imported. It is 0 for a session whose cwd differs
// here and in its agent, so that the session never counts as missing from a list.
func (r *row) listedAs(n sessionstore.Session, now int64) int64 {
	cwd := n.Keys.Roots.Cwd().String()
	switch {
	case cwd != r.keys.cwd && cwd != r.keys.realCwd:
		return 0
	case r.listed == 0, r.gone:
		return now
	}
	return r.listed
}

// usedSince reports whether n shows that a session which is unused here has been used in the agent.
func (r *row) usedSince(n sessionstore.Session) bool {
	return r.isUnused() && !n.Updated.IsZero() &&
		n.Updated.UnixMilli()-r.created > sessionstore.UnusedGrace.Milliseconds()
}

// mayRetitle reports whether importing n may change the title. An unused session gets its title
// with its first prompt.
func (r *row) mayRetitle(n sessionstore.Session) bool {
	return !r.renamed && !r.isUnused() && n.Title != r.title
}

// neverUsed reports whether the session was imported and nothing was stored in it.
func (r *row) neverUsed() bool { return r.imported && r.turns == 0 && r.last == 0 }

// untouched reports whether the session was imported and never used, archived or renamed.
func (r *row) untouched() bool { return r.neverUsed() && !r.archived && !r.renamed }

// restores reports whether a store takes a copy of a session that was last used at a time. same is
// the session with its id, holder the one with its state key; each may be nil.
func restores(updated time.Time, same, holder *row) bool {
	older := func(r *row) bool { return r.updated < updated.UnixMilli() }
	return (same == nil || older(same)) && (holder == nil || holder.neverUsed() || older(holder))
}

// tombstone returns the name of a tombstone: a hash of the state key, so that a deleted session
// leaves nothing readable.
func tombstone(stateKey string) []byte {
	name := sha256.Sum256([]byte(stateKey))
	return name[:]
}

// importedTitle returns the title of a known session once n is imported: the present title, unless
// the agent gave the session a better one. A title that the agent took from the first prompt is not
// better, because it may contain text that the user did not type. Nor is a placeholder. first are
// the first updates of the session's history.
func importedTitle(n sessionstore.Session, present string, first []sessionstore.Update) string {
	title := folded(strings.TrimRight(n.Title, ". …"))
	switch {
	case title == "", present != "" && isPlaceholder(title):
		return present
	case len(first) == 0:
		return sessionstore.CleanTitle(n.Title)
	}
	var said sessionstore.Passages
	for _, u := range first {
		said.Add(0, u)
	}
	said.End()
	prompt := ""
	for _, p := range said.Done {
		if p.Role == sessionstore.RoleUser {
			prompt += p.Text + "\n"
		}
	}
	if prompt == "" { // it comes later
		prompt = present
	}
	// A title from the prompt begins at the beginning of a line, and may span several.
	var starts []int
	all := ""
	for line := range strings.Lines(prompt) {
		starts = append(starts, len(all))
		all += folded(line)
	}
	if slices.ContainsFunc(starts, func(at int) bool {
		return strings.HasPrefix(all[at:], title)
	}) {
		return present
	}
	return sessionstore.CleanTitle(n.Title)
}

// isPlaceholder reports whether a folded title is one that agents give new sessions, such as "New
// session - 2026-01-02T03:04:05.678Z".
func isPlaceholder(title string) bool {
	for _, first := range []string{"new", "child", "untitled"} {
		rest, ok := strings.CutPrefix(title, first)
		if !ok {
			continue
		}
		for _, noun := range []string{"session", "chat", "thread", "conversation", ""} {
			time, ok := strings.CutPrefix(rest, noun)
			if ok && strings.Trim(time, "-0123456789tz:.") == "" {
				return true
			}
		}
	}
	return false
}

// folded returns a text without white space and in lower case.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

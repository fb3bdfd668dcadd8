package sessionstore

import "time"

// tombstoneRenewal is the age at which the store renews its memory of a deleted session that is
// still listed. It does not do so each time, so that importing an unchanged list writes nothing.
const tombstoneRenewal = 24 * time.Hour

// Known is a store's data about a session that its agent lists. Times are milliseconds since 1970,
// UTC.
type Known struct {
	Created, Updated int64
	Title, Meta      string
	Renamed          bool
	Unused           bool  // as in [UnusedFilter]
	Listed           int64 // when its agent listed it here, negative if it no longer does
	Cwd, RealCwd     string
	Deleted          int64 // when it was deleted or given up, 0 if it was not; then nothing else is set
}

// Outdated reports whether importing n now would change something besides the title.
func (k Known) Outdated(n Imported, now int64) bool {
	if k.Deleted != 0 {
		return now-k.Deleted > tombstoneRenewal.Milliseconds()
	}
	return k.ListedAs(n, now) != k.Listed || string(n.Meta) != k.Meta || k.UsedSince(n) ||
		!n.Updated.IsZero() && n.Updated.UnixMilli() > k.Updated
}

// ListedAs returns the value of Listed after n is imported now. It is 0 for a session whose cwd
// differs here and in its agent, so that the session never counts as missing from a list.
func (k Known) ListedAs(n Imported, now int64) int64 {
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

// UsedSince reports whether n shows that a session which is unused here has been used in the agent.
func (k Known) UsedSince(n Imported) bool {
	return k.Unused && !n.OnlyKnown && !n.Updated.IsZero() &&
		n.Updated.UnixMilli()-k.Created > UnusedGrace.Milliseconds()
}

// MayRetitle reports whether importing n may change the title, as [Imported.NewTitle] says. An
// unused session gets its title with its first prompt.
func (k Known) MayRetitle(n Imported) bool {
	return !k.Renamed && !k.Unused && n.Title != k.Title
}

package core

import (
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Listing is which lists show a session.
type Listing int64

// The listings, as they are stored.
const (
	Ordinary Listing = iota
	Archived
	Unused
)

// listRange is a part of a list that is in its order in an index: the sessions of an agent with a
// listing, whose keys have certain values.
type listRange struct {
	listing Listing
	since   int64 // of the last activity, 0 for all
	// keep, if not nil, are the only sessions of the range, and since is 0.
	keep  []sessionstore.ID
	where []condition
}

// condition requires that a column has a text.
type condition struct{ column, text string }

// ranges returns the ranges whose union q's filters match. A filter matches by its spelling or its
// real path.
func ranges(q sessionstore.Query) []listRange {
	all := listings(q)
	if f := q.Cwd; f != nil {
		all = either(all, "cwd", f.Spelling.String(), f.Real.String())
	}
	if f := q.Additional; f != nil {
		all = either(all, "dirs", listText(f.Spelling.Strings()), listText(pathsOf(f.Real)))
	}
	return all
}

// listings returns the ranges of the sessions that q matches without regard to their roots.
func listings(q sessionstore.Query) []listRange {
	if q.Archive == sessionstore.OnlyArchived {
		return []listRange{{listing: Archived}}
	}
	unused := listRange{listing: Unused}
	if !q.Unused.Before.IsZero() {
		unused.since = q.Unused.Before.UnixMilli()
	}
	all := []listRange{{listing: Ordinary}, unused}
	if q.Archive == sessionstore.ArchivedToo {
		all = append(all, listRange{listing: Archived})
	}
	var keep []sessionstore.ID
	for _, id := range q.Unused.Keep {
		if id.Validate() == nil {
			keep = append(keep, id)
		}
	}
	if unused.since != 0 && len(keep) > 0 {
		all = append(all, listRange{listing: Unused, keep: keep})
	}
	return all
}

// either splits each range in two: one for the column name, and one for the column of its real
// path.
func either(all []listRange, name, spelling, real string) (split []listRange) {
	for _, r := range all {
		for _, c := range []condition{{name, spelling}, {"real_" + name, real}} {
			one := r
			one.where = append(r.where[:len(r.where):len(r.where)], c)
			split = append(split, one)
		}
	}
	return split
}

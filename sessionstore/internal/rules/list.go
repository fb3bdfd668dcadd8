package rules

import (
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Listing is which lists show a session.
type Listing int

// The listings, as they are stored.
const (
	Ordinary Listing = iota
	Archived
	Unused
)

// Range is a part of a list that is in its order in an index: the sessions of an agent with a
// listing and with certain values in some columns.
type Range struct {
	Listing Listing
	Since   int64 // of the last activity, 0 for all
	// Keep, if not nil, are the only sessions of the range, and Since is 0.
	Keep []sessionstore.ID
	// Where are conditions that all hold.
	Where []Condition
}

// Condition requires that a column has a value: a string for cwd and real_cwd, a []string for dirs
// and real_dirs.
type Condition struct {
	Column string
	Value  any
}

// Ranges returns the ranges whose union q's filters match. A filter matches by its spelling or its
// real path.
func Ranges(q sessionstore.Query) []Range {
	ranges := listings(q)
	if f := q.Cwd; f != nil {
		ranges = either(ranges, "cwd", f.Spelling.String(), f.Real.String())
	}
	if f := q.Additional; f != nil {
		ranges = either(ranges, "dirs", append([]string{}, f.Spelling.Strings()...), texts(f.Real))
	}
	return ranges
}

// listings returns the ranges of the sessions that q matches without regard to their roots.
func listings(q sessionstore.Query) []Range {
	if q.Archive == sessionstore.OnlyArchived {
		return []Range{{Listing: Archived}}
	}
	unused := Range{Listing: Unused}
	if !q.Unused.Before.IsZero() {
		unused.Since = q.Unused.Before.UnixMilli()
	}
	ranges := []Range{{Listing: Ordinary}, unused}
	if q.Archive == sessionstore.ArchivedToo {
		ranges = append(ranges, Range{Listing: Archived})
	}
	var keep []sessionstore.ID
	for _, id := range q.Unused.Keep {
		if id.Validate() == nil {
			keep = append(keep, id)
		}
	}
	if unused.Since != 0 && len(keep) > 0 {
		ranges = append(ranges, Range{Listing: Unused, Keep: keep})
	}
	return ranges
}

// either splits each range in two: one for the column name, and one for the column of its real
// path.
func either(ranges []Range, name string, spelling, real any) (split []Range) {
	for _, r := range ranges {
		for _, c := range []Condition{{name, spelling}, {"real_" + name, real}} {
			one := r
			one.Where = append(r.Where[:len(r.Where):len(r.Where)], c)
			split = append(split, one)
		}
	}
	return split
}

const (
	// RetentionInterval is the time between two applications of a store's retention, among all
	// programs that use it. RetentionTimeout limits how long that delays a program that exits.
	RetentionInterval = 24 * time.Hour
	RetentionTimeout  = time.Second
)

// Bounds returns the bounds of q as stores compare them with Updated: exclusive, in milliseconds
// since 1970 UTC, 0 for none.
func Bounds(q sessionstore.PruneQuery) (unused, all int64) {
	bound := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	return bound(q.UnusedBefore), bound(q.Before)
}

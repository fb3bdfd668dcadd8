package workspace

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// Dirs is an ordered list of directories without exact duplicates. It is immutable; the
// zero value is the empty list.
type Dirs struct{ list []entry }

// entry is a directory and its place in the list that was sent, so that a
// violation found later points at what the client wrote.
type entry struct {
	dir  Dir
	sent int
}

// ParseDirs checks each path as [ParseDir] does, and drops repeated directories, keeping the
// first of each (A7). The error is a [*violation.Error] that lists the violations, up to [violation.Limit],
// with the field "additionalDirectories" and the place in paths.
func ParseDirs(paths []string) (Dirs, error) {
	var (
		out  Dirs
		bad  []strictjson.Violation
		seen = make(map[Dir]bool, len(paths))
	)
	for i, path := range paths {
		if len(bad) >= strictjson.MaxViolations {
			break // no more are listed
		}
		if broken := check(native{}, path); len(broken) > 0 {
			for _, v := range each(broken, fieldAdditional, path) {
				bad = append(bad, v.At(i))
			}
			continue
		}
		dir := Dir{native{}.normalise(path)}
		if !seen[dir] {
			seen[dir] = true
			out.list = append(out.list, entry{dir, i})
		}
	}
	if len(bad) > 0 {
		return Dirs{}, strictjson.Refuse(bad...)
	}
	return out, nil
}

// Len is the number of directories.
func (d Dirs) Len() int { return len(d.list) }

// At is directory i. It panics if i is out of range.
func (d Dirs) At(i int) Dir { return d.list[i].dir }

// All yields each directory with its place in the list, from 0.
func (d Dirs) All() iter.Seq2[int, Dir] {
	return func(yield func(int, Dir) bool) {
		for i, e := range d.list {
			if !yield(i, e.dir) {
				return
			}
		}
	}
}

// Equal reports whether both lists hold the same directories in the same order.
func (d Dirs) Equal(other Dirs) bool {
	return slices.EqualFunc(d.list, other.list, func(a, b entry) bool { return a.dir == b.dir })
}

// Without is the list without dir.
func (d Dirs) Without(dir Dir) Dirs {
	kept := make([]entry, 0, len(d.list))
	for _, e := range d.list {
		if e.dir != dir {
			kept = append(kept, e)
		}
	}
	return Dirs{kept}
}

// Strings are the paths, not nil. The caller owns the slice.
func (d Dirs) Strings() []string {
	out := make([]string, len(d.list))
	for i, e := range d.list {
		out[i] = e.dir.path
	}
	return out
}

// MarshalJSON encodes an array of strings, [] for the empty list (A15).
func (d Dirs) MarshalJSON() ([]byte, error) { return json.Marshal(d.Strings()) }

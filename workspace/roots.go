package workspace

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// Roots is the ordered root set of a session, [cwd, ...additionalDirectories] (clause
// A20): absolute, normalised, without exact duplicates, nested and overlapping roots
// kept (A7, A8). It is immutable and safe to share. [NewRoots] makes one of what a client
// sent, [RootsFrom] of parts that were checked before; the zero value is no root set.
type Roots struct {
	cwd        Dir
	additional Dirs
}

// NewRoots checks a root set by the rules that need no file system (A4), normalises it
// (A8), and drops repeated entries and those equal to cwd (A7). The error is a
// [*violation.Error] that lists every violation: those of "cwd", then those of
// "additionalDirectories" in order.
func NewRoots(cwd string, additional []string) (Roots, error) {
	first, err := ParseDir(cwd)
	bad := strictjson.ViolationsOf(err)
	rest, err := ParseDirs(additional)
	bad = append(bad, strictjson.ViolationsOf(err)...)
	if len(bad) > 0 {
		return Roots{}, strictjson.Refuse(bad...)
	}
	return RootsFrom(first, rest), nil
}

// RootsFrom joins parts that were checked before, such as stored ones, into a root
// set. An entry equal to cwd is dropped. A zero cwd makes the zero Roots.
func RootsFrom(cwd Dir, additional Dirs) Roots {
	if cwd.IsZero() {
		return Roots{}
	}
	return Roots{cwd, additional.Without(cwd)}
}

// Cwd is the first root.
func (r Roots) Cwd() Dir { return r.cwd }

// Additional are the roots after cwd.
func (r Roots) Additional() Dirs { return r.additional }

// IsZero reports whether r is no root set.
func (r Roots) IsZero() bool { return r.cwd.IsZero() }

// Len is the number of roots, cwd included; 0 for the zero Roots.
func (r Roots) Len() int {
	if r.IsZero() {
		return 0
	}
	return 1 + r.additional.Len()
}

// At is root i, cwd for 0. It panics if i is out of range.
func (r Roots) At(i int) Dir {
	switch {
	case r.IsZero():
		panic("workspace: At of the zero Roots")
	case i == 0:
		return r.cwd
	default:
		return r.additional.At(i - 1)
	}
}

// All yields each root with its place in the set, cwd first.
func (r Roots) All() iter.Seq2[int, Dir] {
	return func(yield func(int, Dir) bool) {
		for i := range r.Len() {
			if !yield(i, r.At(i)) {
				return
			}
		}
	}
}

// Equal reports whether both sets hold the same directories in the same order.
func (r Roots) Equal(other Roots) bool {
	return r.cwd == other.cwd && r.additional.Equal(other.additional)
}

// String lists the roots in order, for a person.
func (r Roots) String() string {
	paths := make([]string, 0, r.Len())
	for _, dir := range r.All() {
		paths = append(paths, dir.path)
	}
	return "[" + strings.Join(paths, ", ") + "]"
}

// MarshalJSON encodes the set as one array of strings, cwd first.
func (r Roots) MarshalJSON() ([]byte, error) {
	paths := make([]string, 0, r.Len())
	for _, dir := range r.All() {
		paths = append(paths, dir.path)
	}
	return json.Marshal(paths)
}

// violation is reason found at root i, at the place where the client wrote it.
func (r Roots) violation(i int, reason strictjson.Reason) strictjson.Violation {
	if i == 0 {
		return strictjson.NewViolation(fieldCwd, r.cwd.path, reason)
	}
	e := r.additional.list[i-1]
	return strictjson.NewViolation(fieldAdditional, e.dir.path, reason).At(e.sent)
}

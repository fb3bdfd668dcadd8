package workspace

import (
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// Dir is an absolute path of a directory as its caller spelled it, normalised: without "."
// components and repeated or trailing separators, but with ".." and links. Dirs compare with ==.
// The zero Dir stands for no directory.
type Dir struct{ path string }

// ParseDir checks that path is a non-empty, absolute path of valid UTF-8 without NUL, and
// normalises it. It does not touch the file system. The error is a [RootErrors] about root 0.
func ParseDir(path string) (Dir, error) {
	dir, errs := parseDir(path, 0)
	return dir, errs.err()
}

// parseDir is ParseDir for the path of a root.
func parseDir(path string, root int) (dir Dir, errs RootErrors) {
	for _, reason := range check(native{}, path) {
		errs = append(errs, RootError{Root: root, Path: path, Reason: reason})
	}
	if errs == nil {
		dir = Dir{native{}.normalise(path)}
	}
	return dir, errs
}

// String returns the path, "" for the zero Dir.
func (d Dir) String() string { return d.path }

// IsZero reports whether d is the zero Dir.
func (d Dir) IsZero() bool { return d.path == "" }

// Contains reports whether other is d or a path below it. It compares the text of the paths.
func (d Dir) Contains(other Dir) bool {
	_, ok := other.Moved(d, d)
	return ok
}

// Moved returns d with its beginning from replaced by to, if d is from or a path below it. It
// compares the text of the paths.
func (d Dir) Moved(from, to Dir) (Dir, bool) {
	if d == from {
		return to, true
	}
	separator := string(filepath.Separator)
	rest, below := strings.CutPrefix(d.path, strings.TrimSuffix(from.path, separator)+separator)
	if !below || from.IsZero() {
		return d, false
	}
	return Dir{strings.TrimSuffix(to.path, separator) + separator + rest}, true
}

// URI returns the directory as a file URI (RFC 8089), percent-encoded so that the path can be
// recovered byte for byte. A drive becomes file:///C:/dir, and a directory on a server
// file://server/share/dir. Most readers collapse "..", so give them the URI of a real path. The URI
// of the zero Dir is "".
func (d Dir) URI() string {
	if d.IsZero() {
		return ""
	}
	return native{}.uri(d.path)
}

// Locate returns the absolute path for a path that a person has typed: "~" is the home directory,
// and a relative path starts at d. Like the system, it applies ".." at the beginning to the path of
// d without links. It leaves everything else as it was typed.
func (d Dir) Locate(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	const separator = string(filepath.Separator)
	path = filepath.FromSlash(path)
	if rest, inHome := strings.CutPrefix(path+separator, "~"+separator); inHome {
		home, err := os.UserHomeDir()
		if err != nil {
			return path // which is not absolute, so it is rejected
		}
		return filepath.Join(home, rest)
	}
	base, isReal := d.path, false
	for path != "" {
		name, rest, _ := strings.Cut(path, separator)
		switch {
		case name == "" || name == ".":
		case name != "..":
			return strings.TrimRight(base, separator) + separator + path
		default:
			if !isReal {
				base, isReal = Real(d).path, true
			}
			base = filepath.Dir(base)
		}
		path = rest
	}
	return base
}

// MarshalJSON encodes the path as a JSON string.
func (d Dir) MarshalJSON() ([]byte, error) { return json.Marshal(d.path) }

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Dir) UnmarshalJSON(raw []byte) error {
	var path string
	*d = Dir{}
	err := json.Unmarshal(raw, &path)
	if err == nil && path != "" {
		*d, err = ParseDir(path)
	}
	return err
}

// check returns what is wrong with the path of a root.
func check(r rules, path string) []Reason {
	if path == "" {
		return []Reason{ReasonEmpty}
	}
	var wrong []Reason
	if !utf8.ValidString(path) {
		wrong = append(wrong, ReasonEncoding)
	}
	if hasNUL(path) {
		wrong = append(wrong, ReasonNUL)
	}
	if !r.absolute(path) {
		wrong = append(wrong, ReasonRelative)
	}
	return wrong
}

// Dirs is an ordered list of directories without duplicates. It is immutable. The zero Dirs is
// empty.
type Dirs struct{ list []entry }

// entry is a directory and its position in the list it was parsed from, for later errors.
type entry struct {
	dir  Dir
	sent int
}

// ParseDirs parses each path as [ParseDir] does, and drops repeated directories, keeping the first
// of each. The error is a [RootErrors], which counts the paths as the roots after cwd: the first is
// root 1.
func ParseDirs(paths []string) (Dirs, error) {
	var (
		out  Dirs
		errs RootErrors
		seen = make(map[Dir]bool, len(paths))
	)
	for i, path := range paths {
		if len(errs) >= maxRootErrors {
			break
		}
		dir, wrong := parseDir(path, 1+i)
		errs = append(errs, wrong...)
		if wrong == nil && !seen[dir] {
			seen[dir] = true
			out.list = append(out.list, entry{dir, 1 + i})
		}
	}
	if len(errs) > 0 {
		return Dirs{}, errs
	}
	return out, nil
}

// Len returns the number of directories.
func (d Dirs) Len() int { return len(d.list) }

// At returns directory i. It panics if i is out of range.
func (d Dirs) At(i int) Dir { return d.list[i].dir }

// All yields each directory with its position, from 0.
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

// Without returns the list without dir.
func (d Dirs) Without(dir Dir) Dirs {
	isDir := func(e entry) bool { return e.dir == dir }
	return Dirs{slices.DeleteFunc(slices.Clone(d.list), isDir)}
}

// Strings returns the paths, never nil. The caller owns the slice.
func (d Dirs) Strings() []string {
	out := make([]string, len(d.list))
	for i, e := range d.list {
		out[i] = e.dir.path
	}
	return out
}

// MarshalJSON encodes an array of strings, [] for the empty list.
func (d Dirs) MarshalJSON() ([]byte, error) { return json.Marshal(d.Strings()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Dirs) UnmarshalJSON(raw []byte) error {
	var paths []string
	err := json.Unmarshal(raw, &paths)
	if err == nil {
		*d, err = ParseDirs(paths)
	}
	return err
}

// Grant says what may be done in a root.
type Grant int

const (
	ReadWrite Grant = iota
	ReadOnly        // nothing in it may be created, changed, moved or removed
)

// Mark returns what people are shown behind a root that has the grant, or "".
func (g Grant) Mark() string {
	if g == ReadOnly {
		return " (read-only)"
	}
	return ""
}

// Roots is an ordered set of directories, cwd first, without duplicates; roots may be nested. It is
// immutable. [NewRoots] and [RootsFrom] construct one, in which everything may be changed. The zero
// Roots has no directories and cannot be opened.
type Roots struct {
	dirs     Dirs // cwd first
	readOnly []Dir
}

// NewRoots parses a root set without touching the file system: it normalises the paths and drops
// repeated entries and those equal to cwd. The error is a [RootErrors] that lists all problems, cwd
// first.
func NewRoots(cwd string, additional []string) (Roots, error) {
	first, errs := parseDir(cwd, 0)
	rest, err := ParseDirs(additional)
	if err != nil {
		errs = append(errs, err.(RootErrors)...)
	}
	if errs != nil {
		return Roots{}, errs
	}
	return RootsFrom(first, rest), nil
}

// RootsFrom returns the root set of cwd and additional without cwd. For the zero cwd it returns the
// zero Roots.
func RootsFrom(cwd Dir, additional Dirs) Roots {
	if cwd.IsZero() {
		return Roots{}
	}
	return Roots{dirs: Dirs{append([]entry{{dir: cwd}}, additional.Without(cwd).list...)}}
}

// Granting returns the set with the grants that grant returns.
func (r Roots) Granting(grant func(dir Dir) Grant) Roots {
	granted := Roots{dirs: r.dirs}
	for _, dir := range r.All() {
		if grant(dir) == ReadOnly {
			granted.readOnly = append(granted.readOnly, dir)
		}
	}
	return granted
}

// ReadOnlyAt returns the set in which only the roots with these paths are read-only.
func (r Roots) ReadOnlyAt(paths []string) Roots {
	return r.Granting(func(dir Dir) Grant {
		if slices.Contains(paths, dir.path) {
			return ReadOnly
		}
		return ReadWrite
	})
}

// Grant returns the grant of a root.
func (r Roots) Grant(dir Dir) Grant {
	if slices.Contains(r.readOnly, dir) {
		return ReadOnly
	}
	return ReadWrite
}

// ReadOnly returns the roots that may only be read, in order.
func (r Roots) ReadOnly() []Dir { return slices.Clone(r.readOnly) }

// GrantOf returns the grant of a directory, a real path, by the innermost of the roots that
// contains it. Of two with the same real path the one that may only be read counts. ok is false if
// none does.
func GrantOf(real Dir, roots []Root) (grant Grant, ok bool) {
	deepest := -1
	for _, root := range roots {
		depth := len(root.Real.path)
		if root.Real.Contains(real) && (depth > deepest || depth == deepest && root.Grant > grant) {
			grant, deepest = root.Grant, depth
		}
	}
	return grant, deepest >= 0
}

// Cwd returns the first root.
func (r Roots) Cwd() Dir {
	if r.IsZero() {
		return Dir{}
	}
	return r.At(0)
}

// Additional returns the roots after cwd.
func (r Roots) Additional() Dirs { return Dirs{r.dirs.list[min(1, r.Len()):]} }

// IsZero reports whether r is the zero Roots.
func (r Roots) IsZero() bool { return r.Len() == 0 }

// Len returns the number of roots, cwd included.
func (r Roots) Len() int { return r.dirs.Len() }

// At returns root i, cwd for 0. It panics if i is out of range.
func (r Roots) At(i int) Dir { return r.dirs.At(i) }

// All yields each root with its position, cwd first.
func (r Roots) All() iter.Seq2[int, Dir] { return r.dirs.All() }

// Equal reports whether both sets hold the same directories in the same order, whatever their
// grants.
func (r Roots) Equal(other Roots) bool { return r.dirs.Equal(other.dirs) }

// String returns the roots in order, for a person.
func (r Roots) String() string { return "[" + strings.Join(r.dirs.Strings(), ", ") + "]" }

// MarshalJSON encodes the set as an array of strings, cwd first.
func (r Roots) MarshalJSON() ([]byte, error) { return r.dirs.MarshalJSON() }

// Real returns the path of d without links, as [Root].Real has it, or d if the directory cannot be
// opened or that path is not UTF-8. Each name is as the disk lists it, so all spellings that a disk
// takes for one directory have the same real path. Use it to compare directories, never to open
// one.
func Real(d Dir) Dir {
	root, err := dirfd.Open(d.path)
	if err != nil {
		return d
	}
	defer root.Close()
	path, _ := root.RealPath(d.path)
	if real, err := ParseDir(path); err == nil {
		return real
	}
	return d
}

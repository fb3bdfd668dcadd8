package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// longestPath is the most bytes of a path that is looked at: what Windows allows, and
// eight times what Linux does.
const longestPath = 32767

var (
	errEmptyPath = fmt.Errorf("%w: the path is empty", fs.ErrInvalid)
	errNULInPath = fmt.Errorf("%w: the path contains a NUL character", fs.ErrInvalid)
	errComponent = fmt.Errorf("%w: not a name in a directory", fs.ErrInvalid)
)

// asked is a path as somebody asked for it, taken apart.
type asked struct {
	path string
	at   location
	// dir reports whether the path can only mean a directory, as "d/" does.
	dir bool
}

func parse(path string) (asked, error) {
	var err error
	switch {
	case path == "":
		err = errEmptyPath
	case hasNUL(path):
		err = errNULInPath
	case len(path) > longestPath:
		err = syscall.ENAMETOOLONG
	}
	if err != nil {
		return asked{}, failed("open", path, err)
	}
	top, names, dir := native{}.split(path)
	return asked{path, location{top, names}, dir}, nil
}

// parseName checks that name is one component, so that it stays in its directory.
func parseName(name string) error {
	top, names, _ := native{}.split(name)
	switch {
	case hasNUL(name):
		return failed("open", name, errNULInPath)
	case top != "" || len(names) != 1 || names[0] != name || name == "..":
		return failed("open", name, errComponent)
	default:
		return nil
	}
}

// failed is err about the path that was asked for, not about the part of it that was
// being walked. errors.Is still finds what it was.
func failed(op, path string, err error) error {
	if denial := (*denialError)(nil); errors.As(err, &denial) {
		return &DeniedError{Path: path, By: denial.by}
	}
	if isMountError(err) {
		return &MountError{Path: path, Why: cause(err)}
	}
	return &fs.PathError{Op: op, Path: path, Err: cause(err)}
}

// unfit is why something of this type is not the file that was asked for.
func unfit(path string, mode fs.FileMode) error {
	switch {
	case mode.IsDir():
		return failed("open", path, syscall.EISDIR)
	case mode.IsRegular(): // "file/"
		return failed("open", path, syscall.ENOTDIR)
	case mode&fs.ModeNamedPipe != 0:
		return &SpecialFileError{Path: path, Kind: "fifo"}
	case mode&fs.ModeSocket != 0:
		return &SpecialFileError{Path: path, Kind: "socket"}
	case mode&fs.ModeDevice != 0:
		return &SpecialFileError{Path: path, Kind: "device"}
	default:
		return &SpecialFileError{Path: path, Kind: "irregular file"}
	}
}

// location is a path taken apart: where its tree starts ("/", a drive, a share; "" for
// a relative path) and the names from there on. It has no empty and no "." names.
type location struct {
	top   string
	names []string
}

func locate(path string) location {
	top, names, _ := native{}.split(path)
	return location{top, names}
}

// String is the path in the platform's own form.
func (l location) String() string { return native{}.join(l.top, l.names) }

// below reports whether l is dir or lies below it.
func (l location) below(dir location) bool {
	return len(l.names) >= len(dir.names) &&
		native{}.same(l.top, dir.top) &&
		slices.EqualFunc(l.names[:len(dir.names)], dir.names, native{}.same)
}

func (l location) equal(other location) bool {
	return len(l.names) == len(other.names) && l.below(other)
}

// child is l and a name. It shares nothing with l.
func (l location) child(names ...string) location {
	return location{l.top, slices.Concat(l.names, names)}
}

// parent is the directory above l, which for the top is the top itself.
func (l location) parent() location {
	if len(l.names) == 0 {
		return l
	}
	return location{l.top, l.names[:len(l.names)-1]}
}

// Ref is where something is: the root that owns it and the path inside that root. A
// Ref holds no links and no "..": it is what a path resolved to when it was
// opened. It says nothing about later.
type Ref struct {
	root Root
	rel  string
}

// Root is the root that owns it: of nested roots the deepest, of roots with one real
// path the first.
func (r Ref) Root() Root { return r.root }

// Rel is the slash-separated path inside the root, "." for the root itself.
func (r Ref) Rel() string { return r.rel }

// Path is the absolute path that starts with the client's spelling of the root: what an editor is
// shown. A Workspace of the same roots opens it.
func (r Ref) Path() string { return r.in(r.root.Dir) }

// Real is the absolute path that starts with the root's real path.
func (r Ref) Real() string { return r.in(r.root.Real) }

func (r Ref) in(dir Dir) string {
	if r.rel == "." {
		return dir.path
	}
	rel := native{}.join("", strings.Split(r.rel, "/"))
	if last := dir.path[len(dir.path)-1]; last == '/' || last == '\\' {
		return dir.path + rel
	}
	return dir.path + native{}.join("", []string{"", rel})
}

// child is name in the directory that r is.
func (r Ref) child(name string) Ref {
	if r.rel == "." {
		return Ref{r.root, name}
	}
	return Ref{r.root, r.rel + "/" + name}
}

// Root is one opened root of a Workspace.
type Root struct {
	// Index is its place in [cwd, ...additionalDirectories], 0 for cwd.
	Index int
	// Dir is the client's spelling.
	Dir Dir
	// Real is the real path when the root was opened.
	Real Dir
}

// ref is a real location in root.
func (w *Workspace) ref(root int, at location) Ref {
	names := at.names[len(w.real[root].names):]
	if len(names) == 0 {
		return Ref{w.opened[root], "."}
	}
	return Ref{w.opened[root], strings.Join(names, "/")}
}

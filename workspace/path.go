package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"unicode/utf8"
)

// maxPath is the maximum length of a path in bytes: what Windows allows, and eight times what Linux
// does.
const maxPath = 32767

var (
	errEmptyPath = fmt.Errorf("%w: the path is empty", fs.ErrInvalid)
	errNULInPath = fmt.Errorf("%w: the path contains a NUL character", fs.ErrInvalid)
	errComponent = fmt.Errorf("%w: not a name in a directory", fs.ErrInvalid)
)

// parsedPath is a path that was asked for.
type parsedPath struct {
	path string
	at   location
	dir  bool // it must be a directory, as "d/" must
}

func parse(path string) (parsedPath, error) {
	var err error
	switch {
	case path == "":
		err = errEmptyPath
	case hasNUL(path):
		err = errNULInPath
	case len(path) > maxPath:
		err = syscall.ENAMETOOLONG
	}
	if err != nil {
		return parsedPath{}, failed("open", path, err)
	}
	top, names, dir := native{}.split(path)
	return parsedPath{path, location{top, names}, dir}, nil
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

// failed returns err as an error about path, without the name that was passed to the system.
// errors.Is still finds the cause.
func failed(op, path string, err error) error {
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		return &DeniedError{Path: path, By: denied.By}
	}
	return &fs.PathError{Op: op, Path: path, Err: cause(err)}
}

// cause returns the system's error in err, without the names that were passed to the system.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	if linkErr, ok := errors.AsType[*os.LinkError](err); ok {
		return linkErr.Err
	}
	return err
}

// notRegular returns the error that path, which leads to a file of this mode, is not a regular
// file.
func notRegular(path string, mode fs.FileMode) error {
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

// location is a path split into names. top is where its tree starts ("/", a drive, a share; "" for
// a relative path). No name is empty or ".".
type location struct {
	top   string
	names []string
}

func locate(path string) location {
	top, names, _ := native{}.split(path)
	return location{top, names}
}

// String returns the path in the platform's own form.
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

// child returns l with names added. It shares no memory with l.
func (l location) child(names ...string) location {
	return location{l.top, slices.Concat(l.names, names)}
}

// clone returns a copy of l that shares no memory with it.
func clone(l location) location { return location{l.top, slices.Clone(l.names)} }

// parent returns the directory above l, l itself for the top.
func (l location) parent() location {
	if len(l.names) == 0 {
		return l
	}
	return location{l.top, l.names[:len(l.names)-1]}
}

// Ref says where a path led when it was resolved: the root that owns it and the path inside that
// root, without links and "..". Refs compare with ==.
type Ref struct {
	root Root
	rel  string
}

// Root returns the root that owns it: the innermost of nested roots, the first of roots with the
// same real path.
func (r Ref) Root() Root { return r.root }

// Rel returns the slash-separated path inside the root, "." for the root itself.
func (r Ref) Rel() string { return r.rel }

// Path returns the absolute path that starts with the root as its caller spelled it. A Workspace of
// the same roots opens it.
func (r Ref) Path() string { return r.in(r.root.Dir) }

// Real returns the absolute path that starts with the root's real path.
func (r Ref) Real() string { return r.in(r.root.Real) }

func (r Ref) in(dir Dir) string {
	if r.rel == "." {
		return dir.path
	}
	rel := filepath.FromSlash(r.rel)
	if last := dir.path[len(dir.path)-1]; last == '/' || last == '\\' {
		return dir.path + rel
	}
	return dir.path + native{}.join("", []string{"", rel})
}

// Child returns the Ref of name in the directory r.
func (r Ref) Child(name string) Ref {
	if r.rel == "." {
		return Ref{r.root, name}
	}
	return Ref{r.root, r.rel + "/" + name}
}

// Parent returns the directory that r is in, or r for a root.
func (r Ref) Parent() Ref { return Ref{r.root, path.Dir(r.rel)} }

// Name returns the last name of r, that of its directory for a root.
func (r Ref) Name() string {
	if r.rel == "." {
		return base(r.root.Dir)
	}
	return path.Base(r.rel)
}

// Root is one opened root of a Workspace.
type Root struct {
	// Index is its position in the root set, 0 for cwd.
	Index int
	// Dir is the path as its caller spelled it.
	Dir Dir
	// Real is the path without links when the root was opened, with names as the disk lists them.
	Real Dir
	// Grant says what may be done in it.
	Grant Grant
}

// Ref returns where the root's directory is.
func (r Root) Ref() Ref { return Ref{r, "."} }

// Recorded returns the path by which the root is recorded and compared, as [Real] does: Real, or
// Dir if that is not UTF-8.
func (r Root) Recorded() Dir {
	if !utf8.ValidString(r.Real.path) {
		return r.Dir
	}
	return r.Real
}

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// openRoot is a root with its open directory.
//
// Paths enter it at two locations: its real path and its spelling. Entering it uses the handle,
// whatever is at the location now.
type openRoot struct {
	Root
	handle      *dirfd.Dir
	at, spelled location // of Real and Dir
	owner       int      // the first root with the same real path, which owns what is in it
}

// openRoots are the roots of a workspace, in order.
type openRoots []*openRoot

// open opens the root that comes after those before.
func (before openRoots) open(dir Dir, grant Grant) (*openRoot, error) {
	handle, err := dirfd.Open(dir.path)
	if err != nil {
		return nil, err
	}
	real, err := handle.RealPath(dir.path)
	if err != nil {
		_ = handle.Close()
		return nil, err
	}
	index, at := len(before), locate(real)
	owner, ok := before.find(at)
	if !ok {
		owner = index
	}
	return &openRoot{Root: Root{Index: index, Dir: dir, Real: Dir{real}, Grant: grant},
		handle: handle, at: at, spelled: locate(dir.path), owner: owner}, nil
}

// close closes the directory of each root.
func (rs openRoots) close() {
	for _, r := range rs {
		_ = r.handle.Close()
	}
}

// list returns the roots without their directories. The caller owns the slice.
func (rs openRoots) list() []Root {
	list := make([]Root, len(rs))
	for i, r := range rs {
		list[i] = r.Root
	}
	return list
}

// find returns the first root whose real path is at.
func (rs openRoots) find(at location) (root int, ok bool) {
	root = slices.IndexFunc(rs, func(r *openRoot) bool { return r.at.equal(at) })
	return root, root >= 0
}

// entered returns the innermost root that the way to at enters, and how many of at's names lead
// there.
func (rs openRoots) entered(at location) (root, names int, ok bool) {
	names = -1
	for _, r := range rs {
		for _, entry := range []location{r.at, r.spelled} {
			if len(entry.names) > names && at.below(entry) {
				root, names, ok = r.owner, len(entry.names), true
			}
		}
	}
	return root, names, ok
}

// liesBelow reports whether the real path of a root is at, or lies below it.
func (rs openRoots) liesBelow(at location) bool {
	return slices.ContainsFunc(rs, func(r *openRoot) bool { return r.at.below(at) })
}

// entersBelow reports whether paths enter the root at a location or below it.
func (r *openRoot) entersBelow(at location) bool { return r.at.below(at) || r.spelled.below(at) }

// is reports whether info describes the root's directory, wherever that is now.
func (r *openRoot) is(info os.FileInfo) bool {
	own, err := r.handle.Lstat(".")
	return err == nil && os.SameFile(own, info)
}

// refAt returns the Ref of a real location in the root.
func (r *openRoot) refAt(at location) Ref {
	names := at.names[len(r.at.names):]
	if len(names) == 0 {
		return r.Ref()
	}
	return Ref{r.Root, strings.Join(names, "/")}
}

// state returns what has happened to the root since it was opened.
func (r *openRoot) state() State {
	there, err := os.Stat(r.Dir.path)
	switch {
	case err == nil:
		if r.is(there) {
			return OK
		}
		return Replaced
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return Unreachable
	}
	if _, err := r.handle.RealPath(r.Dir.path); err == nil {
		return Moved
	}
	return Missing
}

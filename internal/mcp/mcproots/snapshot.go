package mcproots

import (
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// Root is a root as it is sent to servers.
type Root struct {
	// URI is the file URI of the real path.
	URI string
	// Name is the name of the directory, with as many parents as are needed to distinguish it from
	// the other roots.
	Name string
	// Real is the real path when the root was granted.
	Real workspace.Dir
	// Dirs are the paths by which the workspace names it, in order.
	Dirs []workspace.Dir
	// Grant says what may be done in it. Servers are not told.
	Grant workspace.Grant

	granted fs.FileInfo
}

// Snapshot is an ordered list of roots at one time. It is immutable and safe to share; the zero
// value is the empty list.
type Snapshot struct{ roots []Root }

// Take returns the roots of an open workspace by their real paths, in order. It leaves out roots
// with the same real path as an earlier one, and those that no longer exist. The error is
// [workspace.ErrClosed].
func Take(w *workspace.Workspace) (Snapshot, error) {
	var s Snapshot
	for _, root := range w.Opened() {
		if at := slices.IndexFunc(s.roots,
			func(r Root) bool { return r.Real == root.Real }); at >= 0 {
			s.roots[at].Dirs = append(s.roots[at].Dirs, root.Dir)
			continue
		}
		info, err := w.Stat(root.Real.String())
		if err != nil {
			return Snapshot{}, err
		}
		s.roots = append(s.roots, Root{URI: root.Real.URI(), Real: root.Real,
			Dirs: []workspace.Dir{root.Dir}, Grant: root.Grant, granted: info.FileInfo})
	}
	setNames(s.roots)
	return s.Existing(), nil
}

// Existing returns the list without the roots whose real path no longer leads to the directory that
// was granted. Order and names stay the same.
func (s Snapshot) Existing() Snapshot {
	gone := func(r Root) bool {
		there, err := os.Stat(r.Real.String())
		return err != nil || !os.SameFile(there, r.granted)
	}
	if !slices.ContainsFunc(s.roots, gone) {
		return s
	}
	return Snapshot{slices.DeleteFunc(slices.Clone(s.roots), gone)}
}

// Len returns the number of roots.
func (s Snapshot) Len() int { return len(s.roots) }

// All yields the roots in order.
func (s Snapshot) All() iter.Seq2[int, Root] { return slices.All(s.roots) }

// Has reports whether a directory is one of the roots, by its real path.
func (s Snapshot) Has(real workspace.Dir) bool {
	return slices.ContainsFunc(s.roots, func(r Root) bool { return r.Real == real })
}

// Equal reports whether both lists have the same roots with the same names in the same order.
func (s Snapshot) Equal(other Snapshot) bool {
	return slices.EqualFunc(s.roots, other.roots,
		func(a, b Root) bool { return a.URI == b.URI && a.Name == b.Name })
}

// Missing returns the roots of s that are not in other.
func (s Snapshot) Missing(other Snapshot) []Root {
	return slices.DeleteFunc(slices.Clone(s.roots),
		func(r Root) bool { return other.Has(r.Real) })
}

// URIs returns the URIs in order. The slice is not nil, and the caller owns it.
func (s Snapshot) URIs() []string {
	uris := make([]string, len(s.roots))
	for i, r := range s.roots {
		uris[i] = r.URI
	}
	return uris
}

// setNames names each root by the end of its real path, with as many parents as no other root has.
func setNames(roots []Root) {
	for i, r := range roots {
		path := filepath.ToSlash(r.Real.String())
		roots[i].Name = r.Real.String()
		for at := strings.LastIndex(path, "/"); at >= 0; at = strings.LastIndex(path[:at], "/") {
			end := path[at:]
			isShared := func(other Root) bool {
				return other.Real != r.Real &&
					strings.HasSuffix(filepath.ToSlash(other.Real.String()), end)
			}
			if end != "/" && !slices.ContainsFunc(roots, isShared) {
				roots[i].Name = end[1:]
				break
			}
		}
	}
}

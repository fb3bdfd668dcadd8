package workspace

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Workspace is an opened root set. It is safe for concurrent use.
//
// Its methods resolve paths like the operating system does: they follow links as far as these stay
// in the roots, ".." is the parent of the directory that was really reached, and a relative path
// starts at cwd. Their errors are [*OutsideError], [*DeniedError], [*RefusedError],
// [*SpecialFileError], [ErrClosed], one that says why, or the system's in an *[fs.PathError].
type Workspace struct {
	*core
	check func(Access) error // nil if everything in the roots may be used
}

// core is shared by a Workspace and those that [Workspace.Checked] made of it.
type core struct {
	roots  Roots
	opened openRoots
	denied denials // of what lies in a root
	policy Policy

	maxEntries int

	locks fileLocks
	swept sync.Map // the real paths of directories where sweep was

	mu      sync.Mutex
	running int
	closed  bool
}

// Roots returns the root set that was opened.
func (w *Workspace) Roots() Roots { return w.roots }

// Opened returns the roots in order, cwd first. The caller owns the slice.
func (w *Workspace) Opened() []Root { return w.opened.list() }

// Root returns root i, cwd for 0. It panics if i is out of range.
func (w *Workspace) Root(i int) Root { return w.opened[i].Root }

// Close makes later operations fail with [ErrClosed]. It does not wait for running ones; the last
// of them closes the roots' directories. Files and directories that were opened stay readable until
// they are closed. A second Close does nothing.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.releaseLocked()
	return nil
}

// begin starts an operation, which must end with finish.
func (w *Workspace) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.running++
	return nil
}

// beginAt parses path and starts an operation on it, which must end with finish unless beginAt
// fails.
func (w *Workspace) beginAt(path string) (parsedPath, error) {
	if err := w.begin(); err != nil {
		return parsedPath{}, err
	}
	a, err := parse(path)
	if err != nil {
		w.finish()
	}
	return a, err
}

func (w *Workspace) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.releaseLocked()
}

// releaseLocked closes the roots' directories once no operation needs them.
func (w *Workspace) releaseLocked() {
	if w.closed && w.running == 0 {
		w.opened.close()
	}
}

// Labels returns a short name for each root, in order: the name of its directory, with as many
// parent directories as are needed to tell the roots apart.
func (w *Workspace) Labels() []string {
	labels := make([]string, len(w.opened))
	for i, root := range w.opened {
		isShared := true
		for parts := 1; isShared; parts++ {
			labels[i] = lastParts(root.Dir.path, parts)
			isShared = slices.ContainsFunc(w.opened, func(other *openRoot) bool {
				return other != root && lastParts(other.Dir.path, parts) == labels[i]
			})
		}
	}
	return labels
}

// lastParts returns the last n components of a path, or the whole path if it has fewer.
func lastParts(path string, n int) string {
	parts := strings.FieldsFunc(filepath.ToSlash(path), func(r rune) bool { return r == '/' })
	if n > len(parts) || len(parts) == 0 {
		return filepath.ToSlash(path)
	}
	return strings.Join(parts[len(parts)-n:], "/")
}

// State says what has happened to a root since it was opened, for a person. The workspace always
// uses the directory that it opened.
type State string

// The states of a root.
const (
	OK          State = "ok"          // the path leads to the directory that was opened
	Moved       State = "moved"       // nothing is at the path; the directory is elsewhere
	Replaced    State = "replaced"    // the path leads to something else
	Missing     State = "missing"     // nothing is at the path, and the directory cannot be found
	Unreachable State = "unreachable" // the path cannot be looked up
)

// State returns the state of root i, cwd for 0. It panics if i is out of range. The error is
// ErrClosed.
func (w *Workspace) State(i int) (State, error) {
	if err := w.begin(); err != nil {
		return "", err
	}
	defer w.finish()
	return w.opened[i].state(), nil
}

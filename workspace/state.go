package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// State is what became of a root since it was opened. The session keeps to the directory that it was
// granted, whatever its state (C8); this is for showing to a person.
type State string

// The states of a root.
const (
	// OK: the path leads to the directory that was granted.
	OK State = "ok"
	// Moved: nothing is at the path, and the directory is somewhere else.
	Moved State = "moved"
	// Replaced: the path leads to something else.
	Replaced State = "replaced"
	// Missing: nothing is at the path, and the directory is not to be found.
	Missing State = "missing"
	// Unreachable: the path cannot be looked up.
	Unreachable State = "unreachable"
)

// State is the state of root i, cwd for 0. It panics if i is out of range. The error is ErrClosed.
func (w *Workspace) State(i int) (State, error) {
	if err := w.begin(); err != nil {
		return "", err
	}
	defer w.end()
	there, err := os.Stat(w.opened[i].Dir.path)
	switch {
	case err == nil:
		granted, err := w.handles[i].Lstat(".")
		if err == nil && os.SameFile(there, granted) {
			return OK, nil
		}
		return Replaced, nil
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return Unreachable, nil
	}
	if _, err := realPathOf(w.handles[i], w.opened[i].Dir.path); err == nil {
		return Moved, nil
	}
	return Missing, nil
}

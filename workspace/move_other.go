//go:build !linux

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// move gives what is in one slot the name of another: here, within a root, through its handle, whose [os.Root]
// nothing can leave. Between roots it fails with EXDEV.
func move(w *Workspace, from, to slot, create Create) error {
	if create == CreateOnly {
		if _, err := to.dir.Lstat(to.name); !errors.Is(err, fs.ErrNotExist) {
			return &os.LinkError{Op: "rename", Old: from.name, New: to.name, Err: syscall.EEXIST}
		}
	}
	if from.root != to.root {
		return from.dir.MoveTo(from.name, to.dir, to.name)
	}
	return w.handles[from.root].root.Rename(w.rel(from), w.rel(to))
}

// moveNew would be MoveTo that takes the name from nothing that bears it; there is no such thing here.
func (*handle) moveNew(string, *handle, string) error { return errors.ErrUnsupported }

// rel is the way to a slot from its root.
func (w *Workspace) rel(s slot) string {
	return strings.Join(s.at.parent().child(s.name).names[len(w.real[s.root].names):], "/")
}

// symlink makes a link with the name and the target, whatever that is.
func (h *handle) symlink(target, name string) error {
	if err := inside("symlink", name); err != nil {
		return err
	}
	return h.root.Symlink(target, name)
}

// setTimes sets the times of name, which is open as a file. A zero time is left as it is.
func (h *handle) setTimes(_ *os.File, name string, accessed, modified time.Time) error {
	if err := inside("chtimes", name); err != nil {
		return err
	}
	return h.root.Chtimes(name, accessed, modified)
}

//go:build !linux

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// rename gives the entry from the name to, which nothing has: within a root, through its handle, whose [os.Root]
// nothing can leave. Between roots it fails with EXDEV.
func rename(w *Workspace, from, to target) error {
	if _, err := to.dir.Lstat(to.name); !errors.Is(err, fs.ErrNotExist) {
		return &os.LinkError{Op: "rename", Old: from.name, New: to.name, Err: syscall.EEXIST}
	}
	if from.root != to.root {
		return from.dir.MoveTo(from.name, to.dir, to.name)
	}
	return w.handles[from.root].root.Rename(w.rel(from), w.rel(to))
}

// moveNew would be MoveTo that takes the name from nothing that bears it; there is no such thing here.
func (*handle) moveNew(string, *handle, string) error { return errors.ErrUnsupported }

// rel is the way to a target from its root.
func (w *Workspace) rel(t target) string {
	return strings.Join(t.at.parent().child(t.name).names[len(w.real[t.root].names):], "/")
}

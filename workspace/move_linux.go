package workspace

import (
	"errors"

	"golang.org/x/sys/unix"
)

// rename gives the entry from the name to, which nothing has. It fails with EXDEV between file systems.
func rename(_ *Workspace, from, to target) error {
	if err := from.dir.moveNew(from.name, to.dir, to.name); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return from.dir.MoveTo(from.name, to.dir, to.name)
}

// moveNew is MoveTo that takes the name from nothing that bears it. It fails with
// [errors.ErrUnsupported] where the file system has no such thing.
func (h *handle) moveNew(name string, to *handle, newname string) error {
	err := h.with(name, to, newname, "renameat2", func(olddir int, oldname string, newdir int, newname string) error {
		return unix.Renameat2(olddir, oldname, newdir, newname, unix.RENAME_NOREPLACE)
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

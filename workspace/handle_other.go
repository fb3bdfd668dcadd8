//go:build !linux

package workspace

import (
	"cmp"
	"io/fs"
	"os"
	"syscall"
)

// handle is a directory that is held open: the one thing through which this package touches the disk.
// A name that its methods take is that of an entry, one component, or "." for the directory itself;
// every other is refused. Here it is an [os.Root], which nothing can leave, and a link that
// takes a name's place between a look and an open leads within the directory at most. What it opens or
// looks at must lie in a mount that is granted, which its children inherit (C7).
//
// It is safe for concurrent use.
type handle struct {
	root    *os.Root
	granted *granted
	denied  Dir // the denied directory that it is, or lies in
}

// openDirectory opens the directory at path, which it resolves as the system does. The "." keeps it
// from waiting at a FIFO.
func openDirectory(path string) (*handle, error) {
	root, err := os.OpenRoot(path + string(os.PathSeparator) + ".")
	if err != nil {
		return nil, err
	}
	return &handle{root: root, granted: &granted{policy: AnyMounts}}, nil
}

// into opens the directory name. It fails with ENOTDIR for a link. A denied directory is entered too, though
// nothing else may be done there, so that ".." leads out again.
func (h *handle) into(name string) (*handle, error) {
	if err := inside("openat", name); err != nil {
		return nil, err
	}
	seen, err := h.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := h.granted.refused(mountOf(seen)); err != nil {
		return nil, &fs.PathError{Op: "openat", Path: name, Err: err}
	}
	if !seen.IsDir() {
		return nil, &fs.PathError{Op: "openat", Path: name, Err: syscall.ENOTDIR}
	}
	root, err := h.root.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	if info, err := root.Stat("."); err != nil || !os.SameFile(info, seen) {
		_ = root.Close()
		if err != nil {
			return nil, err
		}
		return nil, errChanging
	}
	return &handle{root, h.granted, cmp.Or(h.denied, h.granted.deniedBy(sightOf(seen)))}, nil
}

// OpenFile opens name. flags and perm are those of [os.OpenFile].
func (h *handle) OpenFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	if err := h.may("openat", name); err != nil {
		return nil, err
	}
	f, err := h.root.OpenFile(name, flags, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = h.granted.refused(mountOf(info))
	}
	if err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "openat", Path: name, Err: err}
	}
	return f, nil
}

// Open opens name for reading.
func (h *handle) Open(name string) (*os.File, error) { return h.OpenFile(name, readFlags, 0) }

// Lstat describes name, without opening it.
func (h *handle) Lstat(name string) (os.FileInfo, error) {
	if err := h.may("lstat", name); err != nil {
		return nil, err
	}
	info, err := h.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := h.granted.refused(mountOf(info)); err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return info, nil
}

// look looks at name, without opening it.
func (h *handle) look(name string) (sight, error) {
	info, err := h.Lstat(name)
	if err != nil {
		return sight{}, err
	}
	return sightOf(info), nil
}

// openRegular opens for reading the regular file name, which was seen to be one. It fails with errChanging
// if it is something else by now.
func (h *handle) openRegular(name string) (*os.File, error) {
	seen, err := h.look(name)
	if err != nil {
		return nil, err
	}
	if !seen.isRegular() {
		return nil, errChanging
	}
	f, err := h.Open(name)
	if err != nil {
		return nil, recheck(h, name, seen.info, err)
	}
	if info, err := f.Stat(); err != nil || !seen.is(info) {
		_ = f.Close()
		return nil, errChanging
	}
	return f, nil
}

// linksMislead reports whether the links in h lead elsewhere than they say. Only Linux has such.
func (h *handle) linksMislead() (bool, error) { return false, nil }

// Readlink is the target of the link name.
func (h *handle) Readlink(name string) (string, error) {
	if err := h.may("readlink", name); err != nil {
		return "", err
	}
	return h.root.Readlink(name)
}

// Mkdir makes the directory name.
func (h *handle) Mkdir(name string, perm fs.FileMode) error {
	if err := h.may("mkdir", name); err != nil {
		return err
	}
	return h.root.Mkdir(name, perm.Perm())
}

// Remove removes name: a directory if it is empty, a link itself.
func (h *handle) Remove(name string) error {
	if err := h.may("remove", name); err != nil {
		return err
	}
	return h.root.Remove(name)
}

// Rename gives oldname the name newname, in the same directory.
func (h *handle) Rename(oldname, newname string) error { return h.MoveTo(oldname, h, newname) }

// MoveTo moves name to newname in the directory to. It fails with [syscall.EXDEV] if that is
// on another file system, or where the system cannot move between two handles.
func (h *handle) MoveTo(name string, to *handle, newname string) error {
	switch {
	case h.denied != (Dir{}) || to.denied != (Dir{}):
		return &denialError{cmp.Or(h.denied, to.denied)}
	case !oneName(name) || !oneName(newname):
		return &os.LinkError{Op: "rename", Old: name, New: newname, Err: syscall.EINVAL}
	case to != h:
		return &os.LinkError{Op: "rename", Old: name, New: newname, Err: syscall.EXDEV}
	default:
		return h.root.Rename(name, newname)
	}
}

// Link gives the file oldname a further name in the same directory.
func (h *handle) Link(oldname, newname string) error {
	if h.denied != (Dir{}) {
		return &denialError{h.denied}
	}
	if !oneName(oldname) || !oneName(newname) {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.EINVAL}
	}
	return h.root.Link(oldname, newname)
}

// Close lets the directory go. A second Close does nothing.
func (h *handle) Close() error { return h.root.Close() }

// may refuses what is done in a denied directory, and by a name that leads out of any.
func (h *handle) may(op, name string) error {
	if h.denied != (Dir{}) {
		return &fs.PathError{Op: op, Path: name, Err: &denialError{h.denied}}
	}
	return inside(op, name)
}

// inside refuses a name that can mean anything but an entry of a directory, or the directory itself.
func inside(op, name string) error {
	if name != "." && !oneName(name) {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EINVAL}
	}
	return nil
}

func oneName(name string) bool {
	top, names, _ := native{}.split(name)
	return top == "" && len(names) == 1 && names[0] == name && name != ".."
}

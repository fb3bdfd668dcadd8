//go:build !linux

package dirfd

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// Dir is an open directory. It is safe for concurrent use.
type Dir struct {
	root *os.Root
	guarded

	// top is the directory that was opened by a path, and path is this one in top: an os.Root can
	// only rename within itself.
	top  *os.Root
	path string
}

// Open opens the directory at path, which the system resolves. It does not wait for a FIFO.
func Open(path string) (*Dir, error) {
	root, err := os.OpenRoot(path + string(os.PathSeparator) + ".")
	if err != nil {
		return nil, err
	}
	return &Dir{root: root, top: root, path: "."}, nil
}

// Close closes the directory. A second Close does nothing.
func (d *Dir) Close() error { return d.root.Close() }

// OpenDir opens the directory name. For a link it fails with ENOTDIR. It opens a directory even in
// a blocked one.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	info, err := d.lstatEvenIfBlocked("openat", name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "openat", Path: name, Err: syscall.ENOTDIR}
	}
	root, err := d.root.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	if now, err := root.Stat("."); err != nil || !os.SameFile(now, info) {
		_ = root.Close()
		return nil, cmp.Or(err, ErrChanged)
	}
	return &Dir{root: root, guarded: d.below(FileStat{info}), top: d.top,
		path: path.Join(d.path, name)}, nil
}

// OpenDirToList is OpenDir for a directory that will be listed.
func (d *Dir) OpenDirToList(name string) (*Dir, error) { return d.OpenDir(name) }

// OpenFile opens the entry name. flags and perm are those of [os.OpenFile].
func (d *Dir) OpenFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	if err := d.check("openat", name); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, flags, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = d.checkMount(mountOf(info))
	}
	if err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "openat", Path: name, Err: err}
	}
	return f, nil
}

// Open opens the entry name for reading. It does not wait, not even for a FIFO.
func (d *Dir) Open(name string) (*os.File, error) { return d.OpenFile(name, readFlags, 0) }

// OpenRegular opens for reading the entry name, which was described as a regular file. If it no
// longer is one, the error is [ErrChanged].
func (d *Dir) OpenRegular(name string) (*os.File, error) {
	before, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsRegular() {
		return nil, ErrChanged
	}
	f, err := d.Open(name)
	if err != nil {
		if now, statErr := d.Stat(name); statErr == nil && !before.SameFile(now.info) {
			return nil, ErrChanged
		}
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !before.SameFile(info) {
		_ = f.Close()
		return nil, ErrChanged
	}
	return f, nil
}

// Stat describes the entry name, a link itself.
func (d *Dir) Stat(name string) (FileStat, error) {
	info, err := d.Lstat(name)
	if err != nil {
		return FileStat{}, err
	}
	return FileStat{info}, nil
}

// Lstat describes the entry name, a link itself.
func (d *Dir) Lstat(name string) (os.FileInfo, error) {
	if err := d.check("lstat", name); err != nil {
		return nil, err
	}
	return d.lstatEvenIfBlocked("lstat", name)
}

// lstatEvenIfBlocked is Lstat for operations that are allowed in a blocked directory.
func (d *Dir) lstatEvenIfBlocked(op, name string) (os.FileInfo, error) {
	if err := checkName(op, name); err != nil {
		return nil, err
	}
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := d.checkMount(mountOf(info)); err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return info, nil
}

// List calls yield for each entry of the directory, in no order, until yield returns false. kind is
// the type bits of the entry. It returns nil if ctx ends.
func (d *Dir) List(ctx context.Context, yield func(name string, kind fs.FileMode) bool) error {
	self, err := d.Open(".")
	if err != nil {
		return err
	}
	defer self.Close()
	return list(ctx, self, yield)
}

// Readlink returns the target of the link name.
func (d *Dir) Readlink(name string) (string, error) {
	if err := d.check("readlink", name); err != nil {
		return "", err
	}
	return d.root.Readlink(name)
}

// LinksMislead reports whether links in the directory may not lead where their targets say,
// which they do only on Linux.
func (d *Dir) LinksMislead() (bool, error) { return false, nil }

// Mkdir creates the directory name.
func (d *Dir) Mkdir(name string, perm fs.FileMode) error {
	if err := d.check("mkdir", name); err != nil {
		return err
	}
	return d.root.Mkdir(name, perm.Perm())
}

// Remove removes the entry name: a directory if it is empty, a link itself.
func (d *Dir) Remove(name string) error {
	if err := d.check("remove", name); err != nil {
		return err
	}
	return d.root.Remove(name)
}

// Rename moves the entry name to newname in the directory to, and replaces what is there. It fails
// with EXDEV between file systems, and between directories that were not opened from one.
func (d *Dir) Rename(name string, to *Dir, newname string) error {
	if err := cmp.Or(d.blocked, to.blocked); err != nil {
		return err
	}
	switch {
	case !oneName(name) || !oneName(newname):
		return &os.LinkError{Op: "rename", Old: name, New: newname, Err: syscall.EINVAL}
	case to == d:
		return d.root.Rename(name, newname)
	case to.top != d.top:
		return &os.LinkError{Op: "rename", Old: name, New: newname, Err: syscall.EXDEV}
	default:
		return d.top.Rename(path.Join(d.path, name), path.Join(to.path, newname))
	}
}

// RenameNew would be Rename that fails with EEXIST if newname exists; there is no such operation
// here.
func (*Dir) RenameNew(string, *Dir, string) error { return errors.ErrUnsupported }

// Exchange would exchange two entries; there is no such operation here.
func (*Dir) Exchange(string, string) error { return errors.ErrUnsupported }

// CreateUnnamed would create a file without a name; there is no such operation here.
func (*Dir) CreateUnnamed(fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

// NameFile would name a file of CreateUnnamed.
func (*Dir) NameFile(*os.File, string) error { return errors.ErrUnsupported }

// CheckWrite returns an error unless the process may change the content of the file name, which
// may be replaced although it may not.
func (d *Dir) CheckWrite(name string) error {
	f, err := d.OpenFile(name, writeFlags, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// Link gives the file name a second name in the same directory.
func (d *Dir) Link(name, newname string) error {
	if d.blocked != nil {
		return d.blocked
	}
	if !oneName(name) || !oneName(newname) {
		return &os.LinkError{Op: "link", Old: name, New: newname, Err: syscall.EINVAL}
	}
	return d.root.Link(name, newname)
}

// check fails in a blocked directory, and for a name that may lead out of any.
func (d *Dir) check(op, name string) error {
	if d.blocked != nil {
		return &fs.PathError{Op: op, Path: name, Err: d.blocked}
	}
	return checkName(op, name)
}

// checkName fails for a name that could mean anything other than an entry of the directory or the
// directory itself.
func checkName(op, name string) error {
	if name != "." && !oneName(name) {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EINVAL}
	}
	return nil
}

func oneName(name string) bool {
	for i := range len(name) {
		if name[i] == '/' || os.IsPathSeparator(name[i]) {
			return false
		}
	}
	return name != "." && filepath.IsLocal(name)
}

// FileStat is the type and identity of a file. The zero FileStat describes nothing.
type FileStat struct{ info os.FileInfo }

// IsZero reports whether s describes nothing.
func (s FileStat) IsZero() bool { return s.info == nil }

// Mode returns the type of the file, with or without its permissions.
func (s FileStat) Mode() fs.FileMode { return s.info.Mode() }

// Mount returns the mount of the file.
func (s FileStat) Mount() MountID { return mountOf(s.info) }

// SameFile reports whether info describes the same file.
func (s FileStat) SameFile(info os.FileInfo) bool {
	return os.SameFile(s.info, info) && s.info.Mode().Type() == info.Mode().Type()
}

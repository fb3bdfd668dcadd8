package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/afero"
)

// Access says what a file system that a workspace is seen as may do.
type Access int

const (
	// ReadOnly fails with [syscall.EROFS] for what would write.
	ReadOnly Access = iota
	// ReadWrite changes the disk, as the methods of Workspace do.
	ReadWrite
)

// FsOptions configure [Workspace.FsWith].
type FsOptions struct {
	// Access says whether it can write. Default ReadOnly.
	Access Access
	// HardLinks says what to do with a file that has more than one name, before it is changed in
	// place. Default RefuseHardLinks.
	HardLinks HardLinks
}

// Fs is the workspace as an [afero.Fs] that can read, for code that takes one: paths mean what they
// mean to [Workspace.Open], and every operation is contained in the same way. What would write fails
// with [syscall.EROFS]. It tells links from what they point to ([afero.Lstater],
// [afero.LinkReader]), so afero.Walk does not follow them.
func (w *Workspace) Fs() afero.Fs { return w.FsWith(FsOptions{}) }

// FsWith is Fs with options. One that can write does it in place, as the os package does: who wants a file
// replaced as a whole takes [Workspace.WriteFile]. Chmod and Chtimes change what a path leads to, a file or
// directory; Chown fails with [errors.ErrUnsupported], and there is no way to make a link.
func (w *Workspace) FsWith(o FsOptions) afero.Fs { return aferoFs{w, o} }

type aferoFs struct {
	w *Workspace
	o FsOptions
}

var (
	_ afero.Lstater    = aferoFs{}
	_ afero.LinkReader = aferoFs{}
)

// Name is the kind of file system.
func (aferoFs) Name() string { return "workspace" }

// Open opens a file or directory for reading.
func (a aferoFs) Open(name string) (afero.File, error) {
	if err := a.w.begin(); err != nil {
		return nil, pathError("open", name, err)
	}
	defer a.w.end()
	where, err := parse(name)
	if err != nil {
		return nil, err
	}
	file, err := a.w.openFile(where)
	if err == nil {
		return &aferoFile{File: file, name: name, refusal: a.o.Access.refusal()}, nil
	}
	if !errors.Is(err, syscall.EISDIR) {
		return nil, pathError("open", name, err)
	}
	dir, err := a.w.openDir(where)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &aferoDir{dir: dir, name: name, refusal: a.o.Access.refusal()}, nil
}

// OpenFile opens a file by the flags of [os.OpenFile], or a directory for reading.
func (a aferoFs) OpenFile(name string, flag int, perm fs.FileMode) (afero.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC) == 0 {
		return a.Open(name)
	}
	if a.o.Access != ReadWrite {
		return nil, readOnly("open", name)
	}
	file, err := a.w.OpenFile(name, flag, OpenOptions{Perm: perm, HardLinks: a.o.HardLinks})
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &aferoWritable{file, name}, nil
}

// Create makes a file, or empties the one that is there, and opens it for reading and writing.
func (a aferoFs) Create(name string) (afero.File, error) {
	return a.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// Stat describes what is at name; a link at the end is followed.
func (a aferoFs) Stat(name string) (fs.FileInfo, error) {
	info, err := a.w.Stat(name)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return info, nil
}

// LstatIfPossible describes what is at name, a link itself; that is always possible.
func (a aferoFs) LstatIfPossible(name string) (fs.FileInfo, bool, error) {
	info, err := a.w.Lstat(name)
	if err != nil {
		return nil, true, pathError("lstat", name, err)
	}
	return info, true, nil
}

// ReadlinkIfPossible is the target of the link at name; that is always possible.
func (a aferoFs) ReadlinkIfPossible(name string) (string, error) {
	target, err := a.w.Readlink(name)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return target, nil
}

// Mkdir is [Workspace.Mkdir].
func (a aferoFs) Mkdir(name string, perm fs.FileMode) error {
	return a.writing("mkdir", name, func() error {
		_, err := a.w.Mkdir(name, perm, MkdirOptions{})
		return err
	})
}

// MkdirAll is [Workspace.MkdirAll].
func (a aferoFs) MkdirAll(name string, perm fs.FileMode) error {
	return a.writing("mkdir", name, func() error {
		_, err := a.w.MkdirAll(name, perm)
		return err
	})
}

// Remove is [Workspace.Remove].
func (a aferoFs) Remove(name string) error {
	return a.writing("remove", name, func() error { return a.w.Remove(name, RemoveOptions{}) })
}

// RemoveAll is [Workspace.RemoveAll].
func (a aferoFs) RemoveAll(name string) error {
	return a.writing("remove", name, func() error {
		return a.w.RemoveAll(context.Background(), name, RemoveOptions{})
	})
}

// Rename is [Workspace.Rename].
func (a aferoFs) Rename(name, newname string) error {
	return a.writing("rename", name, func() error {
		_, err := a.w.Rename(context.Background(), name, newname, RenameOptions{})
		return err
	})
}

// Chmod sets permissions.
func (a aferoFs) Chmod(name string, perm fs.FileMode) error {
	return a.writing("chmod", name, func() error { return a.w.chmod(name, perm, a.o.HardLinks) })
}

// Chtimes sets times; a zero one is left as it is.
func (a aferoFs) Chtimes(name string, accessed, modified time.Time) error {
	return a.writing("chtimes", name, func() error { return a.w.chtimes(name, accessed, modified, a.o.HardLinks) })
}

// Chown fails: nobody who edits files gives them away.
func (a aferoFs) Chown(name string, _, _ int) error {
	return a.writing("chown", name, func() error { return errors.ErrUnsupported })
}

// writing does what writes, if that may be.
func (a aferoFs) writing(op, name string, it func() error) error {
	if a.o.Access != ReadWrite {
		return readOnly(op, name)
	}
	if err := it(); err != nil {
		return pathError(op, name, err)
	}
	return nil
}

// refusal is why a file that was opened for reading is not written.
func (a Access) refusal() error {
	if a == ReadWrite {
		return syscall.EBADF
	}
	return syscall.EROFS
}

func readOnly(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: syscall.EROFS}
}

// pathError gives err the form that users of afero expect, and leaves it to be found inside.
func pathError(op, name string, err error) error {
	if _, ok := err.(*fs.PathError); ok {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

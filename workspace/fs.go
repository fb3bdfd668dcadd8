package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/afero"
)

// Fs is the workspace as an [afero.Fs], for code that takes one: paths mean what they
// mean to [Workspace.Open], and every operation is contained in the same way. It can read;
// what would write fails with [syscall.EROFS]. It tells links from what they
// point to ([afero.Lstater], [afero.LinkReader]), so afero.Walk does not follow them.
func (w *Workspace) Fs() afero.Fs { return aferoFs{w} }

type aferoFs struct{ w *Workspace }

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
		return &aferoFile{File: file, name: name}, nil
	}
	if !errors.Is(err, syscall.EISDIR) {
		return nil, pathError("open", name, err)
	}
	dir, err := a.w.openDir(where)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &aferoDir{dir: dir, name: name}, nil
}

// OpenFile is Open, and fails for every flag that would write.
func (a aferoFs) OpenFile(name string, flag int, _ fs.FileMode) (afero.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC) != 0 {
		return nil, readOnly("open", name)
	}
	return a.Open(name)
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

// What follows would write.

func (aferoFs) Create(name string) (afero.File, error)    { return nil, readOnly("create", name) }
func (aferoFs) Mkdir(name string, _ fs.FileMode) error    { return readOnly("mkdir", name) }
func (aferoFs) MkdirAll(name string, _ fs.FileMode) error { return readOnly("mkdir", name) }
func (aferoFs) Remove(name string) error                  { return readOnly("remove", name) }
func (aferoFs) RemoveAll(name string) error               { return readOnly("remove", name) }
func (aferoFs) Rename(name, _ string) error               { return readOnly("rename", name) }
func (aferoFs) Chmod(name string, _ fs.FileMode) error    { return readOnly("chmod", name) }
func (aferoFs) Chown(name string, _, _ int) error         { return readOnly("chown", name) }
func (aferoFs) Chtimes(name string, _, _ time.Time) error { return readOnly("chtimes", name) }

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

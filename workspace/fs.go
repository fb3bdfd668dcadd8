package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/afero"
)

// Fs returns the workspace as an [afero.Fs], for hosts whose tools take one. It interprets and
// confines paths as [Workspace.Open] does.
//
// It opens files and directories for reading, and describes them; it reports links as links
// ([afero.Lstater], [afero.LinkReader]), so that afero.Walk does not follow them. A file is written
// as a whole: open it with [os.O_TRUNC] or [os.O_EXCL] (as Create and afero.WriteFile do), and
// Close writes it as [Workspace.WriteFile] does, or returns why not. Everything else fails with
// [fs.ErrPermission]. Wrap it in [afero.NewReadOnlyFs] to permit no writes.
func (w *Workspace) Fs() afero.Fs { return aferoFs{afero.FromIOFS{FS: files{w}}, w} }

// aferoFs refuses what [afero.FromIOFS] does, which is everything that changes something.
type aferoFs struct {
	afero.FromIOFS
	w *Workspace
}

var (
	_ afero.Lstater    = aferoFs{}
	_ afero.LinkReader = aferoFs{}
)

func (aferoFs) Name() string { return "workspace" }

// files is a workspace as an fs.FS. Its names are paths.
type files struct{ w *Workspace }

// Open opens a file or directory for reading.
func (f files) Open(name string) (fs.File, error) {
	a, err := f.w.beginAt(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	defer f.w.finish()
	file, err := f.w.openFile(a)
	if err == nil {
		return file, nil
	}
	if errors.Is(err, syscall.EISDIR) {
		var dir *Directory
		if dir, err = f.w.openDir(a); err == nil {
			return &listing{Directory: dir, name: a.name(dir.Ref())}, nil
		}
	}
	return nil, pathError("open", name, err)
}

// listing is a Directory as an fs.File. It lists itself once, sorted, on the first request.
type listing struct {
	*Directory
	name   string
	listed bool
	rest   []fs.DirEntry
}

var _ fs.ReadDirFile = (*listing)(nil)

func (l *listing) Read([]byte) (int, error) { return 0, failed("read", l.name, syscall.EISDIR) }

func (l *listing) Stat() (fs.FileInfo, error) {
	info, err := l.Directory.Stat()
	info.name = l.name
	return info, err
}

// ReadDir implements [fs.ReadDirFile]. It leaves out entries that were removed since they were
// listed.
func (l *listing) ReadDir(n int) ([]fs.DirEntry, error) {
	if !l.listed {
		entries, err := l.Entries(context.Background())
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if info, err := l.Lstat(e.Name); err == nil {
				l.rest = append(l.rest, fs.FileInfoToDirEntry(info))
			}
		}
		l.listed = true
	}
	switch {
	case n <= 0 || n > len(l.rest) && len(l.rest) > 0:
		n = len(l.rest)
	case len(l.rest) == 0:
		return nil, io.EOF
	}
	some := l.rest[:n]
	l.rest = l.rest[n:]
	return some, nil
}

// OpenFile opens a file to be written as a whole, or a file or directory for reading. A new file
// gets the process's default permissions.
func (a aferoFs) OpenFile(name string, flag int, _ fs.FileMode) (afero.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC) == 0 {
		return a.Open(name)
	}
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 || flag&os.O_APPEND != 0 ||
		flag&(os.O_TRUNC|os.O_EXCL) == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	at, err := a.w.WriteTarget(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	_, err = a.w.Stat(name)
	o := WriteOptions{At: at}
	switch {
	case flag&os.O_CREATE == 0:
		if err != nil {
			return nil, pathError("open", name, err)
		}
		o.Create = ReplaceOnly
	case flag&os.O_EXCL != 0:
		if err == nil {
			err = fs.ErrExist
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, pathError("open", name, err)
		}
		o.Create = CreateOnly
	}
	unread, err := afero.FromIOFS{FS: unread{a, name}}.Open(name)
	return &aferoWriter{File: unread, w: a.w, o: o}, err
}

// Create opens a file to be written as a whole, whether it exists or not.
func (a aferoFs) Create(name string) (afero.File, error) {
	return a.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// Stat describes what is at name; it follows a link at the end.
func (a aferoFs) Stat(name string) (fs.FileInfo, error) {
	info, err := a.w.Stat(name)
	return info, pathError("stat", name, err)
}

// LstatIfPossible describes what is at name, a link itself. It is always possible.
func (a aferoFs) LstatIfPossible(name string) (fs.FileInfo, bool, error) {
	info, err := a.w.Lstat(name)
	return info, true, pathError("lstat", name, err)
}

// ReadlinkIfPossible returns the target of the link at name. It is always possible.
func (a aferoFs) ReadlinkIfPossible(name string) (string, error) {
	target, err := a.w.Readlink(name)
	return target, pathError("readlink", name, err)
}

// MkdirAll succeeds if name is a directory already.
func (a aferoFs) MkdirAll(name string, perm fs.FileMode) error {
	if info, err := a.w.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	return a.Mkdir(name, perm)
}

// unread is a file that is only written, as an fs.FS.
type unread struct {
	fs   aferoFs
	name string
}

func (u unread) Open(string) (fs.File, error) { return u, nil }
func (u unread) Close() error                 { return nil }

// Read fails.
func (u unread) Read([]byte) (int, error) { return 0, failed("read", u.name, fs.ErrPermission) }

// Stat describes the file as it is on the disk.
func (u unread) Stat() (fs.FileInfo, error) { return u.fs.Stat(u.name) }

// aferoWriter is a file that is written as a whole when it is closed.
type aferoWriter struct {
	afero.File // of unread, for everything else
	w          *Workspace
	o          WriteOptions
	data       bytes.Buffer
	closed     bool
}

// Write adds to the file, up to 64 MiB in all.
func (f *aferoWriter) Write(p []byte) (int, error) {
	if f.closed {
		return 0, failed("write", f.Name(), fs.ErrClosed)
	}
	if err := checkSize(f.Name(), f.data.Len()+len(p)); err != nil {
		return 0, pathError("write", f.Name(), err)
	}
	return f.data.Write(p)
}

func (f *aferoWriter) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

// Close writes the file.
func (f *aferoWriter) Close() error {
	if f.closed {
		return failed("close", f.Name(), fs.ErrClosed)
	}
	f.closed = true
	_, err := f.w.WriteFile(context.Background(), f.Name(), f.data.Bytes(), f.o)
	return pathError("write", f.Name(), err)
}

// pathError returns err, unless nil, in the form that users of afero expect.
func pathError(op, name string, err error) error {
	if _, ok := err.(*fs.PathError); ok || err == nil {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

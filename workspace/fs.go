package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/afero"
)

var errFsUnsupported = fmt.Errorf("%w: a workspace only reads files and writes whole ones",
	errors.ErrUnsupported)

// Fs returns the workspace as an [afero.Fs], for hosts whose tools take one. It interprets and
// confines paths as [Workspace.Open] does.
//
// It opens files and directories for reading, and describes them; it reports links as links
// ([afero.Lstater], [afero.LinkReader]), so that afero.Walk does not follow them. A file is written
// as a whole: open it with [os.O_TRUNC] or [os.O_EXCL] (as Create and afero.WriteFile do), and
// Close writes it as [Workspace.WriteFile] does, or returns why not. Everything else fails with
// [errors.ErrUnsupported]. Wrap it in [afero.NewReadOnlyFs] to permit no writes.
func (w *Workspace) Fs() afero.Fs { return aferoFs{w} }

type aferoFs struct{ w *Workspace }

var (
	_ afero.Lstater    = aferoFs{}
	_ afero.LinkReader = aferoFs{}
)

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
		return &aferoFile{File: file, unsupported: unsupported{name}}, nil
	}
	if !errors.Is(err, syscall.EISDIR) {
		return nil, pathError("open", name, err)
	}
	dir, err := a.w.openDir(where)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &aferoDir{dir: dir, unsupported: unsupported{name}}, nil
}

// OpenFile opens a file to be written as a whole, or a file or directory for reading. A new file
// gets the process's default permissions.
func (a aferoFs) OpenFile(name string, flag int, _ fs.FileMode) (afero.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC) == 0 {
		return a.Open(name)
	}
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 || flag&os.O_APPEND != 0 ||
		flag&(os.O_TRUNC|os.O_EXCL) == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errFsUnsupported}
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
	return &aferoWriter{w: a.w, o: o, unsupported: unsupported{name}}, nil
}

// Create opens a file to be written as a whole, whether it exists or not.
func (a aferoFs) Create(name string) (afero.File, error) {
	return a.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// Stat describes what is at name; it follows a link at the end.
func (a aferoFs) Stat(name string) (fs.FileInfo, error) {
	info, err := a.w.Stat(name)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return info, nil
}

// LstatIfPossible describes what is at name, a link itself. It is always possible.
func (a aferoFs) LstatIfPossible(name string) (fs.FileInfo, bool, error) {
	info, err := a.w.Lstat(name)
	if err != nil {
		return nil, true, pathError("lstat", name, err)
	}
	return info, true, nil
}

// ReadlinkIfPossible returns the target of the link at name. It is always possible.
func (a aferoFs) ReadlinkIfPossible(name string) (string, error) {
	target, err := a.w.Readlink(name)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return target, nil
}

// MkdirAll succeeds if name is a directory already.
func (a aferoFs) MkdirAll(name string, _ fs.FileMode) error {
	if info, err := a.w.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	return unsupported{name}.op("mkdir")
}

func (aferoFs) Mkdir(name string, _ fs.FileMode) error    { return unsupported{name}.op("mkdir") }
func (aferoFs) Remove(name string) error                  { return unsupported{name}.op("remove") }
func (aferoFs) RemoveAll(name string) error               { return unsupported{name}.op("remove") }
func (aferoFs) Rename(name, _ string) error               { return unsupported{name}.op("rename") }
func (aferoFs) Chmod(name string, _ fs.FileMode) error    { return unsupported{name}.op("chmod") }
func (aferoFs) Chown(name string, _, _ int) error         { return unsupported{name}.op("chown") }
func (aferoFs) Chtimes(name string, _, _ time.Time) error { return unsupported{name}.op("chtimes") }

// unsupported is an afero.File with this name whose operations all fail.
type unsupported struct{ name string }

func (u unsupported) op(op string) error {
	return &fs.PathError{Op: op, Path: u.name, Err: errFsUnsupported}
}

func (u unsupported) Name() string                       { return u.name }
func (u unsupported) Sync() error                        { return nil }
func (u unsupported) Read([]byte) (int, error)           { return 0, u.op("read") }
func (u unsupported) ReadAt([]byte, int64) (int, error)  { return 0, u.op("read") }
func (u unsupported) Seek(int64, int) (int64, error)     { return 0, u.op("seek") }
func (u unsupported) Write([]byte) (int, error)          { return 0, u.op("write") }
func (u unsupported) WriteAt([]byte, int64) (int, error) { return 0, u.op("write") }
func (u unsupported) WriteString(string) (int, error)    { return 0, u.op("write") }
func (u unsupported) Truncate(int64) error               { return u.op("truncate") }
func (u unsupported) Readdir(int) ([]fs.FileInfo, error) { return nil, u.op("readdir") }
func (u unsupported) Readdirnames(int) ([]string, error) { return nil, u.op("readdir") }

// aferoFile is a File as an afero.File.
type aferoFile struct {
	*File
	unsupported
}

var _ afero.File = (*aferoFile)(nil)

func (f *aferoFile) Read(p []byte) (int, error)                { return f.File.Read(p) }
func (f *aferoFile) ReadAt(p []byte, off int64) (int, error)   { return f.File.ReadAt(p, off) }
func (f *aferoFile) Seek(off int64, whence int) (int64, error) { return f.File.Seek(off, whence) }

// aferoWriter is a file that is written as a whole when it is closed.
type aferoWriter struct {
	unsupported
	w      *Workspace
	o      WriteOptions
	data   bytes.Buffer
	closed bool
}

var _ afero.File = (*aferoWriter)(nil)

// Write adds to the file, up to 64 MiB in all.
func (f *aferoWriter) Write(p []byte) (int, error) {
	if f.closed {
		return 0, failed("write", f.name, fs.ErrClosed)
	}
	if err := checkSize(f.name, f.data.Len()+len(p)); err != nil {
		return 0, pathError("write", f.name, err)
	}
	return f.data.Write(p)
}

func (f *aferoWriter) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

// Stat describes the file as it is on the disk until Close.
func (f *aferoWriter) Stat() (fs.FileInfo, error) { return aferoFs{f.w}.Stat(f.name) }

// Close writes the file.
func (f *aferoWriter) Close() error {
	if f.closed {
		return failed("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	if _, err := f.w.WriteFile(context.Background(), f.name, f.data.Bytes(), f.o); err != nil {
		return pathError("write", f.name, err)
	}
	return nil
}

// aferoDir is a Directory as an afero.File. It lists itself once, sorted, on the first request.
type aferoDir struct {
	unsupported
	dir    *Directory
	listed bool
	rest   []Entry
}

var _ afero.File = (*aferoDir)(nil)

func (d *aferoDir) Close() error { return d.dir.Close() }

func (d *aferoDir) Stat() (fs.FileInfo, error) {
	info, err := d.dir.Stat()
	if err != nil {
		return nil, pathError("stat", d.name, err)
	}
	a, err := parse(d.name)
	if err != nil {
		return nil, err
	}
	info.name = a.name(d.dir.Ref())
	return info, nil
}

// next returns the next n entries, all if n <= 0, by the rules of os.File.Readdir.
func (d *aferoDir) next(n int) ([]Entry, error) {
	if !d.listed {
		entries, err := d.dir.Entries(context.Background())
		if err != nil {
			return nil, err
		}
		d.listed, d.rest = true, entries
	}
	switch {
	case n <= 0 || n > len(d.rest) && len(d.rest) > 0:
		n = len(d.rest)
	case len(d.rest) == 0:
		return nil, io.EOF
	}
	some := d.rest[:n]
	d.rest = d.rest[n:]
	return some, nil
}

func (d *aferoDir) Readdirnames(n int) ([]string, error) {
	entries, err := d.next(n)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names, err
}

// Readdir describes the entries, without those removed since they were listed.
func (d *aferoDir) Readdir(n int) ([]fs.FileInfo, error) {
	entries, err := d.next(n)
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		if info, err := d.dir.Lstat(e.Name); err == nil {
			infos = append(infos, info)
		}
	}
	return infos, err
}

func (d *aferoDir) Read([]byte) (int, error) { return 0, failed("read", d.name, syscall.EISDIR) }
func (d *aferoDir) ReadAt([]byte, int64) (int, error) {
	return 0, failed("read", d.name, syscall.EISDIR)
}

// pathError returns err in the form that users of afero expect.
func pathError(op, name string, err error) error {
	if _, ok := err.(*fs.PathError); ok {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

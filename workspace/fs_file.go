package workspace

import (
	"context"
	"io"
	"io/fs"
	"syscall"

	"github.com/spf13/afero"
)

// aferoFile is a File as an afero.File.
type aferoFile struct {
	*File
	name string
}

var _ afero.File = (*aferoFile)(nil)

func (f *aferoFile) Name() string { return f.name }

func (f *aferoFile) Readdir(int) ([]fs.FileInfo, error) {
	return nil, failed("readdir", f.name, syscall.ENOTDIR)
}

func (f *aferoFile) Readdirnames(int) ([]string, error) {
	return nil, failed("readdir", f.name, syscall.ENOTDIR)
}

func (f *aferoFile) Write([]byte) (int, error)          { return 0, readOnly("write", f.name) }
func (f *aferoFile) WriteAt([]byte, int64) (int, error) { return 0, readOnly("write", f.name) }
func (f *aferoFile) WriteString(string) (int, error)    { return 0, readOnly("write", f.name) }
func (f *aferoFile) Truncate(int64) error               { return readOnly("truncate", f.name) }
func (f *aferoFile) Sync() error                        { return nil }

// aferoDir is a Directory as an afero.File. It lists itself once, sorted, when it is first asked.
type aferoDir struct {
	dir    *Directory
	name   string
	listed bool
	rest   []Entry
}

var _ afero.File = (*aferoDir)(nil)

func (d *aferoDir) Name() string { return d.name }
func (d *aferoDir) Close() error { return d.dir.Close() }
func (d *aferoDir) Sync() error  { return nil }

func (d *aferoDir) Stat() (fs.FileInfo, error) {
	info, err := d.dir.handle.Lstat(".")
	if err != nil {
		return nil, failed("stat", d.name, err)
	}
	a, err := parse(d.name)
	if err != nil {
		return nil, err
	}
	return Info{info, d.dir.Ref(), a.name(d.dir.Ref())}, nil
}

// next are the next n entries, all if n <= 0, by the rules of os.File.Readdir.
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

// Readdir describes the entries; one that vanished since the listing is left out.
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
func (d *aferoDir) Seek(int64, int) (int64, error)     { return 0, failed("seek", d.name, syscall.EISDIR) }
func (d *aferoDir) Write([]byte) (int, error)          { return 0, readOnly("write", d.name) }
func (d *aferoDir) WriteAt([]byte, int64) (int, error) { return 0, readOnly("write", d.name) }
func (d *aferoDir) WriteString(string) (int, error)    { return 0, readOnly("write", d.name) }
func (d *aferoDir) Truncate(int64) error               { return readOnly("truncate", d.name) }

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
	name    string
	refusal error // of what would write
}

var _ afero.File = (*aferoFile)(nil)

func (f *aferoFile) Name() string { return f.name }

func (f *aferoFile) Readdir(int) ([]fs.FileInfo, error) {
	return nil, failed("readdir", f.name, syscall.ENOTDIR)
}

func (f *aferoFile) Readdirnames(int) ([]string, error) {
	return nil, failed("readdir", f.name, syscall.ENOTDIR)
}

func (f *aferoFile) Write([]byte) (int, error)          { return 0, f.refuse() }
func (f *aferoFile) WriteAt([]byte, int64) (int, error) { return 0, f.refuse() }
func (f *aferoFile) WriteString(string) (int, error)    { return 0, f.refuse() }
func (f *aferoFile) Truncate(int64) error               { return f.refuse() }
func (f *aferoFile) Sync() error                        { return nil }
func (f *aferoFile) refuse() error                      { return failed("write", f.name, f.refusal) }

// aferoWritable is a WritableFile as an afero.File.
type aferoWritable struct {
	*WritableFile
	name string
}

var _ afero.File = (*aferoWritable)(nil)

func (f *aferoWritable) Name() string { return f.name }

func (f *aferoWritable) Readdir(int) ([]fs.FileInfo, error) {
	return nil, failed("readdir", f.name, syscall.ENOTDIR)
}

func (f *aferoWritable) Readdirnames(int) ([]string, error) {
	return nil, failed("readdir", f.name, syscall.ENOTDIR)
}

// aferoDir is a Directory as an afero.File. It lists itself once, sorted, when it is first asked.
type aferoDir struct {
	dir     *Directory
	name    string
	refusal error // of what would write
	listed  bool
	rest    []Entry
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
func (d *aferoDir) Write([]byte) (int, error)          { return 0, d.refuse() }
func (d *aferoDir) WriteAt([]byte, int64) (int, error) { return 0, d.refuse() }
func (d *aferoDir) WriteString(string) (int, error)    { return 0, d.refuse() }
func (d *aferoDir) Truncate(int64) error               { return d.refuse() }
func (d *aferoDir) refuse() error                      { return failed("write", d.name, d.refusal) }

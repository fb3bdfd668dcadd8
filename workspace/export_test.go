package workspace

import (
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// Native returns a path with slashes as the platform spells it.
func Native(path string) string {
	if runtime.GOOS == "windows" {
		return `C:` + filepath.FromSlash(path)
	}
	return path
}

// FromURI returns the path of a file URI.
func FromURI(uri *url.URL) string {
	if runtime.GOOS == "windows" {
		if uri.Host != "" {
			return `\\` + uri.Host + filepath.FromSlash(uri.Path)
		}
		return filepath.FromSlash(uri.Path[1:])
	}
	return uri.Path
}

// WithWorkers sets how many folders are visited at once.
func (o WalkOptions) WithWorkers(n int) WalkOptions {
	o.workers = n
	return o
}

// WithMaxSkipped sets how many bytes of a file are read to get at the lines asked for.
func (o TextOptions) WithMaxSkipped(n int64) TextOptions {
	o.maxSkipped = n
	return o
}

// MaxStalled is the maximum number of calls that a Stalled counts.
const MaxStalled = maxStalled

// MaxWrite is the maximum size, in bytes, of a file that is written.
const MaxWrite = maxWrite

// RefOf returns where one of its entries is.
func (f *Folder) RefOf(e Entry) Ref {
	if f.dir == nil {
		return f.ref.Child(e.Name)
	}
	return f.dir.refOf(e)
}

// LocksFiles reports whether the file at path can be locked for other processes.
func LocksFiles(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return dirfd.TryLock(f) == nil
}

// WithPatience sets how long Open waits for file systems.
func (o Options) WithPatience(d time.Duration) Options {
	o.patience = d
	return o
}

// TemporaryName returns a name for a draft.
func TemporaryName() string { return temporaryName() }

// Open opens the regular file name for reading, or the one that a link leads to.
func (d *Directory) Open(name string) (*File, error) {
	if err := d.begin(name); err != nil {
		return nil, err
	}
	defer d.w.finish()
	return d.openFile(name)
}

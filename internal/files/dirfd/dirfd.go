// Package dirfd opens directories and works on the entries in them, by name and by an open handle.
//
// A [Dir] takes names of a single component, or "." for the directory itself, and rejects all
// others with EINVAL. It never follows a link. So nothing done through a Dir can leave its
// directory, whatever happens to the file system in the meantime. A [Guard] adds restrictions:
// which mounts may be reached, and which directories must not be touched.
//
// On Linux a Dir is a file descriptor. Elsewhere it is an [os.Root]: a link that replaces an entry
// between a check and an open cannot lead out of the directory. The package compiles on macOS and
// Windows, but has not been run there. On Windows junctions and volume mount points count as links.
package dirfd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrChanged is returned when an entry was replaced while it was being opened. Try again.
var ErrChanged = errors.New("it keeps changing while it is being opened")

// ErrLocked is returned by [TryLock] if another process, or another part of this one, has locked
// the file.
var ErrLocked = errors.New("another program has locked it")

// MountID identifies a mount. Zero is an unknown one.
type MountID uint64

// Guard decides what a [Dir], and the directories opened from it, may reach. It must be safe for
// concurrent use.
type Guard interface {
	// CheckMount returns an error if nothing on a mount may be opened or described.
	CheckMount(MountID) error
	// CheckDir returns an error if nothing in a directory may be touched. The directory can still
	// be opened, so that a path can lead through it and out again.
	CheckDir(FileStat) error
}

// guarded says what a [Dir] may reach.
type guarded struct {
	guard   Guard // nil if everything may be reached
	blocked error // why nothing in the directory may be touched
}

// SetGuard restricts what the directory and those opened from it later may reach; nil allows
// everything. It must not be called while the directory is in use.
func (g *guarded) SetGuard(guard Guard) { g.guard = guard }

// Blocked returns why nothing in the directory may be touched, nil if it may.
func (g *guarded) Blocked() error { return g.blocked }

// CheckDir returns why nothing in a directory below this one may be touched, nil if it may.
func (g *guarded) CheckDir(dir FileStat) error {
	if g.blocked != nil || g.guard == nil {
		return g.blocked
	}
	return g.guard.CheckDir(dir)
}

// below returns what a directory in this one may reach.
func (g *guarded) below(dir FileStat) guarded { return guarded{g.guard, g.CheckDir(dir)} }

func (g *guarded) checkMount(id MountID) error {
	if g.guard == nil {
		return nil
	}
	return g.guard.CheckMount(id)
}

// IsDir reports whether s describes a directory.
func (s FileStat) IsDir() bool { return s.Mode().IsDir() }

// IsLink reports whether s describes a link.
func (s FileStat) IsLink() bool { return s.Mode()&linkTypes != 0 }

// IsRegular reports whether s describes a regular file.
func (s FileStat) IsRegular() bool { return s.Mode().IsRegular() }

var errNoRealPath = errors.New("the system does not tell where it is")

// RealPath returns the path of the directory without links. opened is the path it was opened by:
// where the system cannot tell the path of a handle, RealPath resolves opened, and fails if that
// now leads to another directory.
func (d *Dir) RealPath(opened string) (string, error) {
	self, err := d.Open(".")
	if err != nil {
		return "", err
	}
	defer self.Close()
	held, err := self.Stat()
	if err != nil {
		return "", err
	}
	leadsHere := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && os.SameFile(info, held)
	}
	if path, err := realPath(self); err == nil && leadsHere(path) {
		return path, nil
	}
	if path, err := filepath.EvalSymlinks(opened); err == nil && leadsHere(path) {
		return path, nil
	}
	return "", errNoRealPath
}

// Sync flushes the directory's entries to disk, where the system can.
func (d *Dir) Sync() error {
	self, err := d.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(self.Sync(), self.Close())
}

// entriesAtOnce is how many entries list reads between two checks of the context.
const entriesAtOnce = 1024

// list calls yield for each entry of an open directory, until yield returns false or ctx ends.
func list(ctx context.Context, dir *os.File, yield func(name string, kind fs.FileMode) bool) error {
	for ctx.Err() == nil {
		entries, err := dir.ReadDir(entriesAtOnce)
		for _, e := range entries {
			if !yield(e.Name(), e.Type()) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OpenAny opens the entry name for reading or, if that is not permitted, for writing. It does not
// wait, and changes nothing.
func (d *Dir) OpenAny(name string) (*os.File, error) {
	f, err := d.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		f, err = d.OpenFile(name, writeFlags, 0)
	}
	return f, err
}

// ReadFile reads an open file into buf, or a larger buffer if it does not fit. The content is nil
// if the file has more than limit bytes.
func ReadFile(f *os.File, buf []byte, limit int64) ([]byte, os.FileInfo, error) {
	info, err := f.Stat()
	if err != nil || info.Size() > limit {
		return nil, info, err
	}
	content, err := readUpTo(f, info.Size(), buf, limit)
	return content, info, err
}

// readUpTo reads a file that had size bytes a moment ago, up to limit. If the first read returns
// size bytes, it assumes that this is the whole file.
func readUpTo(f io.Reader, size int64, buf []byte, limit int64) ([]byte, error) {
	if int64(cap(buf)) <= size {
		buf = make([]byte, size+4096)
	}
	buf = buf[:cap(buf)]
	n, err := f.Read(buf[:min(int64(len(buf)), max(limit, 1))])
	if int64(n) == size || errors.Is(err, io.EOF) {
		return buf[:n], nil
	}
	if err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(f, limit-int64(n)))
	return append(buf[:n:n], rest...), err
}

// Losses is a set of what a file does not get from the one that it replaces.
type Losses uint8

// What a file may not get. Package workspace says what each means.
const (
	LosesOwner Losses = 1 << iota
	LosesGroup
	LosesACL
	LosesAttributes
)

// Package privatefile writes small files that only the user may read, in a state directory.
//
// A file is replaced as a whole: a reader, in this process or another, finds either the old or the
// new content, and what was written survives a power failure. If several processes write a file at
// once, the last one wins. [Swap] is for a new content that depends on the old.
//
//	err := privatefile.WriteFile(filepath.Join(state, "allowed", name), content)
package privatefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// MakeDir creates dir with its parents unless it exists, and makes it inaccessible to others. dir
// must not be a link, and must belong to the user, also if that is root. On Windows the directory
// inherits the permissions of its parent. The error is a [*fs.PathError].
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if isForeign(info) {
		return &fs.PathError{Op: "mkdir", Path: dir,
			Err: fmt.Errorf("it belongs to another user: %w", fs.ErrPermission)}
	}
	// even if dir has this mode: it fails unless the user owns dir
	return os.Chmod(dir, 0o700)
}

// WriteFile creates or replaces a file atomically. It creates the directory with [MakeDir].
func WriteFile(path string, content []byte) error {
	if err := MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return Replace(path, content, 0o600)
}

// CreateFile is [WriteFile] for a file that must not exist: of several processes that create a file
// at once, one succeeds, and the error of the others is fs.ErrExist.
func CreateFile(path string, content []byte) error {
	if err := MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return write(path, content, 0o600, func(from, to string) error {
		defer os.Remove(from)
		return os.Link(from, to)
	})
}

// Replace creates or replaces a file atomically, with the given permissions. It leaves those of the
// directory, which must exist, as they are.
func Replace(path string, content []byte, perm fs.FileMode) error {
	return write(path, content, perm, os.Rename)
}

// ErrChanged is the error of [Swap] for a file that somebody else changes.
var ErrChanged = errors.New("the file has changed")

// Swap is [Replace] for a file that still has the content old, or does not exist if old is empty.
// Of several processes that swap a file at once, one succeeds, and the error of the others is
// [ErrChanged].
func Swap(path string, old, content []byte, perm fs.FileMode) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close() // releases the lock
	if errors.Is(dirfd.TryLock(dir), dirfd.ErrLocked) {
		return ErrChanged
	}
	now, err := os.ReadFile(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case !bytes.Equal(now, old):
		return ErrChanged
	}
	return Replace(path, content, perm)
}

// write writes a new file and gives it its name with name.
func write(path string, content []byte, perm fs.FileMode, name func(from, to string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && perm != 0o600 {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = name(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	syncDir(dir)
	return nil
}

// Remove removes a file. A file that does not exist is not an error.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		syncDir(filepath.Dir(path))
	}
	return err
}

// syncDir flushes a directory's entries to disk, where the system supports it. It ignores errors:
// the operation has already succeeded.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

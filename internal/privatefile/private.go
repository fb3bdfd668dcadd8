// Package private keeps small files that are for this user alone, in a state directory.
//
// A file is replaced as a whole: who reads it, in this process or another, finds what was there before or what is there
// now, and what was written survives a loss of power. Of several who write it at once the last one stays, so no locks are
// needed as long as what is written does not depend on what was there.
//
//	err := private.WriteFile(filepath.Join(state, "allowed", name), content)
package privatefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MakeDir makes dir, or makes sure of it: a directory, not a link to one, that is closed to others. On Windows that is so
// by its place in the user's profile. The error is a [*fs.PathError].
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
	if info.Mode().Perm() == 0o700 {
		return nil
	}
	return os.Chmod(dir, 0o700) // only its owner may
}

// WriteFile makes or replaces a file, whole or not at all. The directory is made as by [MakeDir].
func WriteFile(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := MakeDir(dir); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	settle(dir)
	return nil
}

// Remove removes a file. It is no error if there is none.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		settle(filepath.Dir(path))
	}
	return err
}

// settle makes what was done to the names in a directory survive a loss of power, where the system has a way to. It is
// done in any case, so a failure here is nobody's.
func settle(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

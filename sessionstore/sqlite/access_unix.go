//go:build unix

package sqlite

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// mayWrite returns an error if the user may not create files in dir.
func mayWrite(dir string) error {
	if err := unix.Access(dir+"/.", unix.W_OK|unix.X_OK); err != nil { // only a directory has "."
		return &fs.PathError{Op: "write in", Path: dir, Err: err}
	}
	return nil
}

//go:build unix

package sqlite

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// checkWritable reports why no file can be created in dir.
func checkWritable(dir string) error {
	if err := unix.Access(dir+"/.", unix.W_OK|unix.X_OK); err != nil { // "." is in directories only
		return &fs.PathError{Op: "access", Path: dir, Err: err}
	}
	return nil
}

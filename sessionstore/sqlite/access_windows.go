package sqlite

import (
	"io/fs"
	"os"
	"syscall"
)

// checkWritable returns an error unless dir is a directory: only creating a file shows more.
func checkWritable(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "stat", Path: dir, Err: syscall.ENOTDIR}
	}
	return err
}

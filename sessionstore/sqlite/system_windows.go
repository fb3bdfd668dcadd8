package sqlite

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// onNetwork reports whether dir is on a network drive, where SQLite's shared memory does not work.
func onNetwork(dir string) bool {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	return err == nil && windows.GetDriveType(root) == windows.DRIVE_REMOTE
}

// mayWrite returns an error if dir is not a directory: only creating a file shows more.
func mayWrite(dir string) error {
	_, err := os.ReadDir(dir)
	return err
}

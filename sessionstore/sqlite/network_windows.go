package sqlite

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// onNetwork reports whether dir is on a network drive, where SQLite's shared memory does not work.
func onNetwork(dir string) bool {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	return err == nil && windows.GetDriveType(root) == windows.DRIVE_REMOTE
}

//go:build linux || darwin

package sqlite

import "golang.org/x/sys/unix"

// hasNoInodes reports whether the file system of dir has space but can hold no more files.
func hasNoInodes(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Files > 0 && s.Ffree == 0 && s.Bavail > 0
}

//go:build linux || darwin

package sandbox

import "golang.org/x/sys/unix"

// mayAccess reports whether we may read or write a file or directory.
func mayAccess(path string, write bool) bool {
	mode := uint32(unix.R_OK)
	if write {
		mode = unix.W_OK
	}
	return unix.Access(path, mode) == nil
}

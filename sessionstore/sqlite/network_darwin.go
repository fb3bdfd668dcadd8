package sqlite

import "golang.org/x/sys/unix"

// onNetwork reports whether dir is on a network file system, where SQLite's shared memory does not
// work.
func onNetwork(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Flags&unix.MNT_LOCAL == 0
}

//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByAnother reports whether a file belongs to neither this user nor root.
func ownedByAnother(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

// writableByOthers reports whether the group or all users can write to a file. A group with the
// number of its user has no other members, by convention.
func writableByOthers(info fs.FileInfo) bool {
	others := fs.FileMode(0o022)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Gid == stat.Uid {
		others = 0o002
	}
	return info.Mode().Perm()&others != 0
}

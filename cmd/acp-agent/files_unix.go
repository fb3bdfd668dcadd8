//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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

// terminalWidth returns the number of columns of a terminal, 0 if it is unknown.
func terminalWidth(terminal *os.File) int {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

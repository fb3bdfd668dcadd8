//go:build unix

package dirfd

import (
	"os"
	"syscall"
)

// CopyOwner gives f the owner and the group of old as far as the process may. It reports whether f
// has that group.
func CopyOwner(f *os.File, old os.FileInfo) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	own, ok := info.Sys().(*syscall.Stat_t)
	was, okWas := old.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !okWas:
		return false
	case own.Uid == was.Uid && own.Gid == was.Gid:
		return true
	case f.Chown(int(was.Uid), int(was.Gid)) == nil:
		return true
	default:
		return own.Gid == was.Gid || f.Chown(-1, int(was.Gid)) == nil
	}
}

// Links returns how many names (hard links) a file has.
func Links(info os.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(stat.Nlink)
}

package workspace

import (
	"os"
	"syscall"
)

// unchanged is Unchanged.
func unchanged(before, now os.FileInfo) bool {
	was, is := statOf(before), statOf(now)
	return was != nil && is != nil && was.Dev == is.Dev && was.Ino == is.Ino && was.Mode == is.Mode &&
		was.Size == is.Size && was.Mtim == is.Mtim && was.Ctim == is.Ctim
}

func statOf(info os.FileInfo) *syscall.Stat_t {
	if d, ok := info.(*described); ok {
		return &d.stat
	}
	stat, _ := info.Sys().(*syscall.Stat_t)
	return stat
}

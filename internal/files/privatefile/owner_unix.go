//go:build unix

package privatefile

import (
	"io/fs"
	"os"
	"syscall"
)

// isForeign reports whether a directory belongs to another user although this user, root, may
// change its permissions. That user could let others in later, and replace what is in it.
func isForeign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Geteuid() == 0 && stat.Uid != 0
}

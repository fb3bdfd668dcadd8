//go:build unix

package dirfd

import (
	"os"
	"syscall"
)

// Trusted reports whether the owner of a file is that of like, this process's user, or root.
func Trusted(file, like os.FileInfo) bool {
	has, ok := file.Sys().(*syscall.Stat_t)
	want, known := like.Sys().(*syscall.Stat_t)
	return ok && known &&
		(has.Uid == want.Uid || has.Uid == 0 || int(has.Uid) == os.Geteuid())
}

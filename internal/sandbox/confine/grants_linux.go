package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// identity returns what a directory keeps when it is renamed and no other directory gets, or "".
func identity(dir string) string {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW,
		unix.STATX_INO|unix.STATX_BTIME, &stat)
	if err != nil || stat.Mask&unix.STATX_BTIME == 0 {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", stat.Ino, stat.Btime.Sec, stat.Btime.Nsec)
}

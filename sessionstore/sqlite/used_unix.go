//go:build unix

package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// usedBy reports whether another process has the file open with SQLite, which holds a lock on a few bytes of it
// for as long as a connection to a write-ahead log lasts. This process must not have it open.
func usedBy(path string) (pid int, used bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	const firstByte, bytes = 0x40000000, 512 // sqlite.org/fileformat2.html, the lock-byte page
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: firstByte, Len: bytes}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return 0, false
	}
	return int(lock.Pid), true
}

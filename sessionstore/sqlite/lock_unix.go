//go:build unix

package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks f until it is closed. It returns errLocked if another process has locked it.
func tryLock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		case err != nil:
			return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
		return nil
	}
}

// usedBy reports whether another process has the file open with SQLite, which locks a few bytes of
// it for as long as a connection to a write-ahead log lasts. This process must not have it open.
func usedBy(path string) (pid int, used bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	const firstByte, bytes = 0x40000000, 512 // sqlite.org/fileformat2.html, the lock-byte page
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: firstByte, Len: bytes}
	err = unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock)
	if err != nil || lock.Type == unix.F_UNLCK {
		return 0, false
	}
	return int(lock.Pid), true
}

//go:build unix

package dirfd

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock locks an open file for this process and others, until the file is closed. Only programs
// that ask for the lock notice it. It does not wait: if somebody else has the lock, the error is
// [ErrLocked], and if the file system has no such locks [errors.ErrUnsupported].
func TryLock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := conn.Control(func(fd uintptr) {
		if !lockable(int(fd)) {
			err = errors.ErrUnsupported
			return
		}
		err = uninterrupted(func() error {
			return unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
		})
	})
	switch {
	case controlErr != nil:
		return controlErr
	case err == unix.EWOULDBLOCK:
		return ErrLocked
	case err != nil: // such as ENOLCK, EBADF on NFS, ENOSYS, EOPNOTSUPP
		return errors.ErrUnsupported
	default:
		return nil
	}
}

// uninterrupted repeats op while a signal interrupts it.
func uninterrupted(op func() error) error {
	for {
		if err := op(); err != unix.EINTR {
			return err
		}
	}
}

//go:build unix

package dirfd

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock locks an open file for this process and others, until the file is closed. Only programs
// that ask for the lock notice it. It does not wait: if somebody else has the lock, the error is
// [ErrLocked], and if the file system has no such locks [errors.ErrUnsupported].
func TryLock(f *os.File) error {
	err := onDescriptor(f, func(fd int) error {
		if !lockable(fd) {
			return errors.ErrUnsupported
		}
		return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	})
	switch {
	case err == nil || errors.Is(err, fs.ErrClosed):
		return err
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrLocked
	default: // such as ENOLCK, EBADF on NFS, ENOSYS, EOPNOTSUPP
		return errors.ErrUnsupported
	}
}

// onDescriptor calls op with the descriptor of f.
func onDescriptor(f *os.File, op func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := conn.Control(func(fd uintptr) {
		err = uninterrupted(func() error { return op(int(fd)) })
	})
	return cmp.Or(controlErr, err)
}

// uninterrupted repeats op while a signal interrupts it.
func uninterrupted(op func() error) error {
	for {
		if err := op(); err != unix.EINTR {
			return err
		}
	}
}

//go:build unix

package dirfd

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// readFlags open for reading without waiting for the other end of a FIFO.
	readFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	// writeFlags open for writing without waiting or changing anything.
	writeFlags = os.O_WRONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	// linkTypes are the types of entries that lead elsewhere.
	linkTypes = fs.ModeSymlink
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
		for err = unix.EINTR; err == unix.EINTR; { // until no signal interrupts it
			err = op(int(fd))
		}
	})
	return cmp.Or(controlErr, err)
}

// Inherit gives f, which will replace old, its owner, group, permissions, access control list and
// extended attributes, as far as the process may, and returns what f did not get. Whatever that is,
// f gives nobody but its new owner more access than old did. As when a program writes to old, f
// gets no set-user-ID bits or capabilities.
func Inherit(f, old *os.File) (Losses, error) {
	was, err := old.Stat()
	if err != nil {
		return 0, err
	}
	lost, err := copyOwner(f, was)
	if err != nil {
		return 0, err
	}
	perm := was.Mode().Perm()
	if lost&LosesGroup != 0 {
		perm = perm&0o700 | 0o011*(perm>>3&perm&0o007)
	}
	notCopied, err := copyAttributes(f, old, lost, perm)
	return lost | notCopied, err
}

// copyOwner gives f the owner and the group of a file as far as the process may.
func copyOwner(f *os.File, was os.FileInfo) (lost Losses, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	now, old := statOf(info), statOf(was)
	if now.Uid != old.Uid && f.Chown(int(old.Uid), int(old.Gid)) != nil {
		lost |= LosesOwner
	}
	if (now.Gid != old.Gid) && (lost != 0 || now.Uid == old.Uid) &&
		f.Chown(-1, int(old.Gid)) != nil {
		lost |= LosesGroup
	}
	return lost, nil
}

// setMode gives f permissions. A file system that cannot store them may refuse that, if f has no
// others.
func setMode(f *os.File, perm fs.FileMode) error {
	err := f.Chmod(perm)
	if err == nil {
		return nil
	}
	if now, statErr := f.Stat(); statErr == nil && now.Mode().Perm()&^perm == 0 {
		return nil
	}
	return err
}

// WouldLose predicts what [Inherit] cannot give to a new file in the directory that replaces old.
func (d *Dir) WouldLose(old os.FileInfo) (lost Losses, err error) {
	was, uid := statOf(old), os.Geteuid()
	if uid == 0 {
		return 0, nil
	}
	if int(was.Uid) != uid {
		lost |= LosesOwner
	}
	groups, err := os.Getgroups()
	if err != nil {
		return 0, err
	}
	in, err := d.Lstat(".")
	if err != nil {
		return 0, err
	}
	inherited := in.Mode()&fs.ModeSetgid != 0 && statOf(in).Gid == was.Gid
	if !inherited && int(was.Gid) != os.Getegid() && !slices.Contains(groups, int(was.Gid)) {
		lost |= LosesGroup
	}
	return lost, nil
}

// statOf returns the system's description of a file.
func statOf(info os.FileInfo) *syscall.Stat_t {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat
	}
	return &syscall.Stat_t{}
}

// Links returns how many names (hard links) a file has.
func Links(info os.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(stat.Nlink)
}

// Trusted reports whether the owner of a file is that of like, this process's user, or root.
func Trusted(file, like os.FileInfo) bool {
	has, ok := file.Sys().(*syscall.Stat_t)
	want, known := like.Sys().(*syscall.Stat_t)
	return ok && known &&
		(has.Uid == want.Uid || has.Uid == 0 || int(has.Uid) == os.Geteuid())
}

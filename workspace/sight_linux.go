package workspace

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sight is what a look at something tells.
type sight struct {
	kind     fs.FileMode // its type bits
	dev, ino uint64
	mount    mountID
}

func (s sight) mode() fs.FileMode { return s.kind }
func (s sight) isDir() bool       { return s.kind.IsDir() }
func (s sight) isLink() bool      { return s.kind&fs.ModeSymlink != 0 }
func (s sight) isRegular() bool   { return s.kind.IsRegular() }

// is reports whether info describes what was seen.
func (s sight) is(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Ino == s.ino && stat.Dev == s.dev && info.Mode().Type() == s.kind
}

// see looks at name in the directory fd, or at fd itself if name is "".
func see(fd int, name string) (sight, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	// An id of a mount is used again once it is unmounted. A unique one is not; a kernel before 6.8
	// has none, and leaves the other.
	const wanted = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_MNT_ID | unix.STATX_MNT_ID_UNIQUE
	var stat unix.Statx_t
	err := unix.Statx(fd, name, flags, wanted, &stat)
	if err == unix.ENOSYS {
		return seeWithoutMount(fd, name, flags)
	}
	if err != nil {
		return sight{}, err
	}
	s := sight{kind: kindBits(uint32(stat.Mode)), dev: unix.Mkdev(stat.Dev_major, stat.Dev_minor), ino: stat.Ino}
	if stat.Mask&(unix.STATX_MNT_ID|unix.STATX_MNT_ID_UNIQUE) != 0 {
		s.mount = mountID(stat.Mnt_id)
	}
	return s, nil
}

// seeWithoutMount is see where the kernel does not know statx.
func seeWithoutMount(fd int, name string, flags int) (sight, error) {
	var stat unix.Stat_t
	if err := unix.Fstatat(fd, name, &stat, flags); err != nil {
		return sight{}, err
	}
	return sight{kind: kindBits(stat.Mode), dev: stat.Dev, ino: stat.Ino}, nil
}

// kindBits are the type bits of a mode of the system.
func kindBits(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		return fs.ModeDevice
	default:
		return fs.ModeIrregular
	}
}

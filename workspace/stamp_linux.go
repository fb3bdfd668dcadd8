package workspace

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stamp tells one state of one file from all others. The zero stamp is that of nothing.
type stamp struct {
	dev, ino     uint64
	mode         uint32
	size         int64
	mtime, ctime moment
}

type moment struct{ sec, nsec int64 }

func (s stamp) there() bool { return s.mode != 0 } // which holds its type

func (s stamp) is(other stamp) bool { return s == other }

// isThing reports whether both are of one thing, in whatever state.
func (s stamp) isThing(other stamp) bool {
	return s.dev == other.dev && s.ino == other.ino && (s.mode^other.mode)&unix.S_IFMT == 0
}

// stampOf is the stamp of what info describes. It is not ok for an info that tells too little.
func stampOf(info os.FileInfo) (s stamp, ok bool) {
	if d, ok := info.(*described); ok {
		return stampOfStat(&d.stat), true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, false
	}
	return stampOfStat(stat), true
}

func stampOfStat(stat *syscall.Stat_t) stamp {
	return stamp{
		dev: uint64(stat.Dev), ino: uint64(stat.Ino), mode: stat.Mode, size: stat.Size,
		mtime: moment{int64(stat.Mtim.Sec), int64(stat.Mtim.Nsec)},
		ctime: moment{int64(stat.Ctim.Sec), int64(stat.Ctim.Nsec)},
	}
}

// stampOfOpen is the stamp of the open directory fd.
func stampOfOpen(fd int) (stamp, error) {
	var stat unix.Stat_t
	err := uninterrupted(func() error { return unix.Fstat(fd, &stat) })
	return newStamp(&stat), err
}

// stampAt is the stamp of name in the directory fd, without following a link.
func stampAt(fd int, name string) (stamp, error) {
	if !inside(name) {
		return stamp{}, unix.EINVAL
	}
	var stat unix.Stat_t
	err := uninterrupted(func() error {
		return unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	})
	if err == unix.ENOENT {
		return stamp{}, nil
	}
	return newStamp(&stat), err
}

func newStamp(stat *unix.Stat_t) stamp {
	return stamp{
		dev: uint64(stat.Dev), ino: uint64(stat.Ino), mode: stat.Mode, size: stat.Size,
		mtime: moment{int64(stat.Mtim.Sec), int64(stat.Mtim.Nsec)},
		ctime: moment{int64(stat.Ctim.Sec), int64(stat.Ctim.Nsec)},
	}
}

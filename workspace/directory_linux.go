package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// described is all that one look at something tells. Its Sys is a *[syscall.Stat_t], as that of the os package.
type described struct {
	name string
	stat syscall.Stat_t
}

func (d *described) Name() string       { return d.name }
func (d *described) Size() int64        { return d.stat.Size }
func (d *described) IsDir() bool        { return d.stat.Mode&unix.S_IFMT == unix.S_IFDIR }
func (d *described) ModTime() time.Time { return time.Unix(d.stat.Mtim.Unix()) }
func (d *described) Sys() any           { return &d.stat }

func (d *described) Mode() fs.FileMode {
	mode := kindBits(d.stat.Mode) | fs.FileMode(d.stat.Mode).Perm()
	if d.stat.Mode&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if d.stat.Mode&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if d.stat.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// statAll looks at name in the directory fd, or at fd itself if name is "", by one call. See see.
func statAll(fd int, name string) (*described, mountID, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	const wanted = unix.STATX_BASIC_STATS | unix.STATX_MNT_ID | unix.STATX_MNT_ID_UNIQUE
	var stat unix.Statx_t
	err := unix.Statx(fd, name, flags, wanted, &stat)
	if err == unix.ENOSYS {
		return statAllWithoutMount(fd, name, flags)
	}
	if err != nil {
		return nil, 0, err
	}
	d := &described{name: name}
	set(&d.stat.Dev, unix.Mkdev(stat.Dev_major, stat.Dev_minor))
	set(&d.stat.Rdev, unix.Mkdev(stat.Rdev_major, stat.Rdev_minor))
	set(&d.stat.Ino, stat.Ino)
	set(&d.stat.Mode, uint64(stat.Mode))
	set(&d.stat.Nlink, uint64(stat.Nlink))
	set(&d.stat.Uid, uint64(stat.Uid))
	set(&d.stat.Gid, uint64(stat.Gid))
	set(&d.stat.Size, stat.Size)
	set(&d.stat.Blocks, stat.Blocks)
	set(&d.stat.Blksize, uint64(stat.Blksize))
	setTime(&d.stat.Atim, stat.Atime)
	setTime(&d.stat.Mtim, stat.Mtime)
	setTime(&d.stat.Ctim, stat.Ctime)
	var mount mountID
	if stat.Mask&(unix.STATX_MNT_ID|unix.STATX_MNT_ID_UNIQUE) != 0 {
		mount = mountID(stat.Mnt_id)
	}
	return d, mount, nil
}

// statAllWithoutMount is statAll where the kernel does not know statx.
func statAllWithoutMount(fd int, name string, flags int) (*described, mountID, error) {
	var stat unix.Stat_t
	if err := unix.Fstatat(fd, name, &stat, flags); err != nil {
		return nil, 0, err
	}
	d := &described{name: name}
	d.stat = syscall.Stat_t{
		Dev: stat.Dev, Rdev: stat.Rdev, Ino: stat.Ino, Mode: stat.Mode, Nlink: stat.Nlink, Uid: stat.Uid, Gid: stat.Gid,
		Size: stat.Size, Blocks: stat.Blocks, Blksize: stat.Blksize,
		Atim: syscall.Timespec(stat.Atim), Mtim: syscall.Timespec(stat.Mtim), Ctim: syscall.Timespec(stat.Ctim),
	}
	return d, 0, nil
}

// set sets a field whose type depends on the processor.
func set[T int32 | int64 | uint32 | uint64](field *T, value uint64) { *field = T(value) }

func setTime(field *syscall.Timespec, at unix.StatxTimestamp) {
	set(&field.Sec, uint64(at.Sec))
	set(&field.Nsec, uint64(at.Nsec))
}

// describe describes name, without opening it, by one call.
func (h *handle) describe(name string) (os.FileInfo, error) {
	var info *described
	var mount mountID
	err := h.do(name, func(fd int) (err error) {
		there := name
		if there == "." { // what may not be searched can be described
			there = ""
		}
		info, mount, err = statAll(fd, there)
		return err
	})
	if err == nil {
		err = h.granted.refused(mount)
	}
	if err != nil {
		return nil, named("statx", name, err)
	}
	info.name = name
	return info, nil
}

// readRegular reads the regular file name, which was seen to be one, into buf or a larger one, unless it has more
// than limit bytes. It fails with errChanging if it is something else by now.
func (h *handle) readRegular(name string, buf []byte, limit int64) ([]byte, os.FileInfo, error) {
	var got int
	err := h.do(name, func(fd int) (err error) {
		got, err = unix.Openat(fd, name, readFlags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, nil, errChanging
	}
	if err != nil {
		return nil, nil, named("openat", name, err)
	}
	defer unix.Close(got)
	info, mount, err := statAll(got, "")
	if err == nil {
		err = h.granted.refused(mount)
	}
	switch {
	case err != nil:
		return nil, nil, named("statx", name, err)
	case !info.Mode().IsRegular():
		return nil, nil, errChanging
	case info.Size() > limit:
		return nil, info, nil
	}
	info.name = name
	buf, err = readUpTo(descriptor(got), info.Size(), buf, limit)
	return buf, info, named("read", name, err)
}

// descriptor is an open file that can be read, and nothing else.
type descriptor int

func (d descriptor) Read(p []byte) (n int, err error) {
	err = uninterrupted(func() error {
		n, err = unix.Read(int(d), p)
		return err
	})
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}

// intoDescribed is intoToList, and describes what it opened by the look that it takes anyway. A directory that may only
// be entered is not described.
func (h *handle) intoDescribed(name string) (*handle, os.FileInfo, error) {
	var got int
	err := h.use(name, func(fd int) (err error) {
		got, err = unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if errors.Is(err, unix.EACCES) {
		child, err := h.into(name)
		return child, nil, err
	}
	if err != nil {
		return nil, nil, named("openat", name, err)
	}
	info, mount, err := statAll(got, "")
	if err == nil {
		err = h.granted.refused(mount)
	}
	if err != nil {
		_ = unix.Close(got)
		return nil, nil, named("openat", name, err)
	}
	info.name = name
	child := h.child(got, sight{fs.ModeDir, info.stat.Dev, info.stat.Ino, mount})
	child.unread.Store(true)
	return child, info, nil
}

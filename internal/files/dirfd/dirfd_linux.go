package dirfd

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// readFlags open for reading without waiting for the other end of a FIFO.
	readFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	// writeFlags open for writing without waiting or changing anything.
	writeFlags = os.O_WRONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	// dirFlags open a directory to list it.
	dirFlags = unix.O_RDONLY | unix.O_DIRECTORY
	// linkTypes are the types of entries that lead elsewhere.
	linkTypes = fs.ModeSymlink
)

// ListBuffer is the size of the buffer for [Dir.List].
const ListBuffer = 32 << 10

// Dir is an open directory. It is safe for concurrent use. Its descriptor stays open until Close
// was called and the last operation that uses it has returned.
type Dir struct {
	fd int // owned by the Dir
	guarded
	// fd can still be listed: it was opened for that, and List has not been called
	unread atomic.Bool

	mu     sync.Mutex
	users  int // operations that use fd
	closed bool
}

// Open opens the directory at path, which the system resolves. It does not wait for a FIFO.
func Open(path string) (*Dir, error) {
	var d *Dir
	err := uninterrupted(func() error {
		fd, err := unix.Open(path+"/.", dirFlags|unix.O_CLOEXEC, 0)
		d = &Dir{fd: fd}
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return d, nil
}

// Close closes the directory. A second Close does nothing.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.closeUnused()
	}
	return nil
}

// closeUnused closes the descriptor if the Dir is closed and no operation uses it. The caller holds
// mu.
func (d *Dir) closeUnused() {
	if d.closed && d.users == 0 {
		_ = unix.Close(d.fd)
	}
}

// OpenDir opens the directory name. For a link it fails with ENOTDIR.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	fd, stat, err := d.open(name, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return d.child(fd, stat), nil
}

// OpenDirToList is OpenDir for a directory that will be listed. It also opens one that may be
// entered but not read.
func (d *Dir) OpenDirToList(name string) (*Dir, error) {
	fd, stat, err := d.open(name, dirFlags, 0)
	if errors.Is(err, unix.EACCES) {
		return d.OpenDir(name)
	}
	if err != nil {
		return nil, err
	}
	child := d.child(fd, stat)
	child.unread.Store(true)
	return child, nil
}

// child returns a Dir that owns fd, a directory opened from d. stat describes it.
func (d *Dir) child(fd int, stat FileStat) *Dir {
	return &Dir{fd: fd, guarded: d.below(stat)}
}

// OpenFile opens the entry name. flags and perm are those of [os.OpenFile].
func (d *Dir) OpenFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	fd, _, err := d.open(name, flags, perm)
	if err != nil {
		return nil, err
	}
	return newFile(fd, flags, name), nil
}

// Open opens the entry name for reading. It does not wait, not even for a FIFO.
func (d *Dir) Open(name string) (*os.File, error) { return d.OpenFile(name, readFlags, 0) }

// OpenRegular opens for reading the entry name, which was described as a regular file. If it no
// longer is one, the error is [ErrChanged]. A FIFO or device that has taken its place is
// opened without waiting, and closed without reading: to open with O_PATH first, and again through
// /proc/self/fd, would avoid that but make a read about a fifth slower.
func (d *Dir) OpenRegular(name string) (*os.File, error) {
	fd, now, err := d.open(name, readFlags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, ErrChanged
	}
	if err != nil {
		return nil, err
	}
	if now.IsZero() {
		now, err = stat(fd, "")
	}
	if err != nil || !now.IsRegular() {
		_ = unix.Close(fd)
		return nil, ErrChanged
	}
	return newFile(fd, readFlags, name), nil
}

// open opens the entry name. If there is a guard, it checks and returns what was opened; otherwise
// now is zero. A directory can be opened even in a blocked one.
func (d *Dir) open(name string, flags int, perm fs.FileMode) (fd int, now FileStat, err error) {
	fd, err = d.openat(name, flags, perm)
	if err == nil && d.guard != nil {
		if now, err = stat(fd, ""); err == nil {
			err = d.checkMount(now.mount)
		}
		if err != nil {
			_ = unix.Close(fd)
		}
	}
	return fd, now, pathError("openat", name, err)
}

// openat is open without the guard.
func (d *Dir) openat(name string, flags int, perm fs.FileMode) (fd int, err error) {
	op := func(dir int) error {
		fd, err = unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	}
	if flags&unix.O_DIRECTORY != 0 {
		err = d.doEvenIfBlocked(name, op)
	} else {
		err = d.do(name, op)
	}
	return fd, err
}

// newFile returns an os.File that owns fd, which was opened with flags. If they contain O_NONBLOCK,
// Read does not wait: for a file that only looks regular, such as /proc/kmsg, it fails with EAGAIN
// if there is nothing to read. The runtime would wait on a non-blocking descriptor, so newFile
// hides from it that fd is one.
func newFile(fd, flags int, name string) *os.File {
	if flags&unix.O_NONBLOCK == 0 {
		return os.NewFile(uintptr(fd), name)
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&unix.O_APPEND)
	f := os.NewFile(uintptr(fd), name)
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&(unix.O_APPEND|unix.O_NONBLOCK))
	return f
}

// ReadRegular reads the entry name, which was described as a regular file, into buf, or a larger
// buffer if it does not fit. The content is nil if the file has more than limit bytes. If it is no
// longer a regular file, the error is [ErrChanged].
func (d *Dir) ReadRegular(name string, buf []byte, limit int64) ([]byte, os.FileInfo, error) {
	fd, err := d.openat(name, readFlags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, nil, ErrChanged
	}
	if err != nil {
		return nil, nil, pathError("openat", name, err)
	}
	defer unix.Close(fd)
	info, mount, err := statAll(fd, "")
	if err == nil {
		err = d.checkMount(mount)
	}
	switch {
	case err != nil:
		return nil, nil, pathError("statx", name, err)
	case !info.Mode().IsRegular():
		return nil, nil, ErrChanged
	case info.Size() > limit:
		return nil, info, nil
	}
	info.name = name
	buf, err = readUpTo(descriptor(fd), info.Size(), buf, limit)
	return buf, info, pathError("read", name, err)
}

// descriptor is an open file as an io.Reader.
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

// Stat describes the entry name, a link itself, with one system call.
func (d *Dir) Stat(name string) (FileStat, error) {
	var now FileStat
	err := d.do(name, func(fd int) (err error) {
		now, err = stat(fd, name)
		return err
	})
	if err == nil {
		err = d.checkMount(now.mount)
	}
	return now, pathError("statx", name, err)
}

// StatAll is Stat that returns an [os.FileInfo]. [os.SameFile] does not work with it.
func (d *Dir) StatAll(name string) (os.FileInfo, error) {
	var info *fileInfo
	var mount MountID
	err := d.do(name, func(fd int) (err error) {
		entry := name
		if entry == "." { // a directory that may not be searched can be described
			entry = ""
		}
		info, mount, err = statAll(fd, entry)
		return err
	})
	if err == nil {
		err = d.checkMount(mount)
	}
	if err != nil {
		return nil, pathError("statx", name, err)
	}
	info.name = name
	return info, nil
}

// Lstat describes the entry name, a link itself.
func (d *Dir) Lstat(name string) (os.FileInfo, error) {
	f, err := d.OpenFile(name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// List calls yield for each entry of the directory, in no order, until yield returns false. buf has
// [ListBuffer] bytes. kind is the type bits of the entry. It returns nil if ctx ends.
func (d *Dir) List(ctx context.Context, buf []byte,
	yield func(name string, kind fs.FileMode) bool) error {
	if !d.unread.CompareAndSwap(true, false) { // a descriptor reads a directory once
		fd, stat, err := d.open(".", dirFlags, 0)
		if err != nil {
			return err
		}
		d = d.child(fd, stat)
		defer d.Close()
	}
	for ctx.Err() == nil {
		var n int
		err := d.do(".", func(fd int) (err error) {
			n, err = unix.Getdents(fd, buf)
			return err
		})
		if n <= 0 || err != nil {
			return pathError("getdents", ".", err)
		}
		if more, err := d.yieldEntries(string(buf[:n]), yield); !more || err != nil {
			return err
		}
	}
	return nil
}

// yieldEntries yields the entries in the output of getdents, whose memory their names share. more
// is false once yield returned false.
func (d *Dir) yieldEntries(
	dirents string, yield func(string, fs.FileMode) bool,
) (more bool, err error) {
	const (
		lengthAt = int(unsafe.Offsetof(unix.Dirent{}.Reclen))
		typeAt   = int(unsafe.Offsetof(unix.Dirent{}.Type))
		nameAt   = int(unsafe.Offsetof(unix.Dirent{}.Name))
	)
	for len(dirents) > nameAt {
		length := int(binary.NativeEndian.Uint16([]byte{dirents[lengthAt], dirents[lengthAt+1]}))
		if length <= nameAt || length > len(dirents) {
			return false, unix.EIO
		}
		name, _, _ := strings.Cut(dirents[nameAt:length], "\x00")
		if name != "." && validName(name) {
			if kind, ok := d.entryType(name, dirents[typeAt]); ok && !yield(name, kind) {
				return false, nil
			}
		}
		dirents = dirents[length:]
	}
	return true, nil
}

// entryType returns the type bits of an entry that is listed with the type dt. Not every file
// system fills it in, so entryType may have to look at the entry. It returns false if the entry has
// been removed.
func (d *Dir) entryType(name string, dt byte) (kind fs.FileMode, ok bool) {
	if dt != unix.DT_UNKNOWN {
		return typeBits(uint32(dt) << 12), true // the inverse of the C macro IFTODT
	}
	now, err := d.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, false
	case err != nil:
		return fs.ModeIrregular, true
	default:
		return now.kind, true
	}
}

// Readlink returns the target of the link name.
func (d *Dir) Readlink(name string) (string, error) {
	var target string
	err := d.do(name, func(fd int) error {
		var buf [unix.PathMax]byte
		n, err := unix.Readlinkat(fd, name, buf[:])
		if err == nil && n == len(buf) { // there may be more
			err = unix.ENAMETOOLONG
		}
		if err == nil {
			target = string(buf[:n])
		}
		return err
	})
	if err != nil {
		return "", &fs.PathError{Op: "readlinkat", Path: name, Err: err}
	}
	return target, nil
}

// LinksMislead reports whether links in the directory may not lead where their targets say,
// like links in /proc.
func (d *Dir) LinksMislead() (bool, error) {
	var system unix.Statfs_t
	err := d.do(".", func(fd int) error { return unix.Fstatfs(fd, &system) })
	return int64(system.Type) == unix.PROC_SUPER_MAGIC, err
}

// Mkdir creates the directory name.
func (d *Dir) Mkdir(name string, perm fs.FileMode) error {
	return pathError("mkdirat", name, d.do(name, func(fd int) error {
		return unix.Mkdirat(fd, name, uint32(perm.Perm()))
	}))
}

// Remove removes the entry name: a directory if it is empty, a link itself.
func (d *Dir) Remove(name string) error {
	return pathError("unlinkat", name, d.do(name, func(fd int) error {
		err := unix.Unlinkat(fd, name, 0)
		if err != unix.EISDIR && err != unix.EPERM {
			return err
		}
		dirErr := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
		if dirErr == unix.ENOTDIR {
			return err
		}
		return dirErr
	}))
}

// Rename moves the entry name to newname in the directory to, and replaces what is there. It fails
// with EXDEV between file systems, or where the system cannot move between two handles.
func (d *Dir) Rename(name string, to *Dir, newname string) error {
	return d.doBoth(name, to, newname, "renameat", unix.Renameat)
}

// RenameNew is Rename that fails with EEXIST if newname exists. If the file system cannot do that,
// the error is [errors.ErrUnsupported].
func (d *Dir) RenameNew(name string, to *Dir, newname string) error {
	return d.rename(name, to, newname, unix.RENAME_NOREPLACE)
}

// Exchange exchanges the entries name and newname. Who watches the directory is told last that
// there is something new at name. If the file system cannot do that, the error is
// [errors.ErrUnsupported].
func (d *Dir) Exchange(name, newname string) error {
	return d.rename(name, d, newname, unix.RENAME_EXCHANGE)
}

// rename is Rename with flags that not every file system knows.
func (d *Dir) rename(name string, to *Dir, newname string, flags uint) error {
	err := d.doBoth(name, to, newname, "renameat2",
		func(olddir int, oldname string, newdir int, newname string) error {
			return unix.Renameat2(olddir, oldname, newdir, newname, flags)
		})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

// CreateUnnamed creates a file in the directory that has no name until [Dir.NameFile] gives it one:
// if the process is killed, nothing is left of it. If the file system cannot do that, the error is
// [errors.ErrUnsupported].
func (d *Dir) CreateUnnamed(perm fs.FileMode) (*os.File, error) {
	var fd int
	err := d.do(".", func(dir int) (err error) {
		fd, err = unix.Openat(dir, ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC,
			uint32(perm.Perm()))
		return err
	})
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENOENT),
		errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPERM): // the last in a removed directory
		return nil, errors.ErrUnsupported
	case err != nil:
		return nil, pathError("openat", ".", err)
	}
	f := os.NewFile(uintptr(fd), "unnamed")
	if _, err := os.Stat(inProc(fd)); err != nil {
		_ = f.Close()
		return nil, errors.ErrUnsupported // NameFile would fail
	}
	return f, nil
}

// NameFile gives a file of [Dir.CreateUnnamed] a name, which must be free.
func (d *Dir) NameFile(f *os.File, name string) error {
	err := onDescriptor(f, func(fd int) error {
		return d.do(name, func(dir int) error {
			return unix.Linkat(unix.AT_FDCWD, inProc(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
		})
	})
	return pathError("linkat", name, err)
}

// inProc returns the path by which /proc shows an open file of this process.
func inProc(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// CheckWrite returns an error unless the process may change the content of the file name, which
// may be replaced although it may not.
func (d *Dir) CheckWrite(name string) error {
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return pathError("faccessat2", name, err)
	}
	err = d.do(name, func(fd int) error {
		_, _, errno := unix.Syscall6(unix.SYS_FACCESSAT2, uintptr(fd),
			uintptr(unsafe.Pointer(path)), unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // filters refuse it with EPERM
		return d.tryToWrite(name)
	}
	return pathError("faccessat2", name, err)
}

// tryToWrite is CheckWrite that opens the file for writing.
func (d *Dir) tryToWrite(name string) error {
	f, err := d.OpenFile(name, writeFlags, 0)
	if errors.Is(err, unix.ETXTBSY) {
		return nil // a program that runs may be replaced
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Link gives the file name a second name in the same directory.
func (d *Dir) Link(name, newname string) error {
	return d.doBoth(name, d, newname, "linkat",
		func(olddir int, oldname string, newdir int, newname string) error {
			return unix.Linkat(olddir, oldname, newdir, newname, 0)
		})
}

// doBoth is do for an operation on name in d and newname in to. opName is for the error.
func (d *Dir) doBoth(name string, to *Dir, newname, opName string,
	op func(int, string, int, string) error) error {
	err := d.do(name, func(fd int) error {
		return to.do(newname, func(tofd int) error { return op(fd, name, tofd, newname) })
	})
	if err != nil {
		return &os.LinkError{Op: opName, Old: name, New: newname, Err: err}
	}
	return nil
}

// do calls op, which works on the entry name, with the descriptor. It fails if the directory is
// blocked.
func (d *Dir) do(name string, op func(fd int) error) error {
	if d.blocked != nil {
		return d.blocked
	}
	return d.doEvenIfBlocked(name, op)
}

// doEvenIfBlocked is do for operations that are allowed in a blocked directory.
func (d *Dir) doEvenIfBlocked(name string, op func(fd int) error) error {
	if !validName(name) {
		return syscall.EINVAL
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return fs.ErrClosed
	}
	d.users++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.users--
		d.closeUnused()
		d.mu.Unlock()
	}()
	return uninterrupted(func() error { return op(d.fd) })
}

// validName reports whether name can only mean an entry of a directory, or the directory itself.
func validName(name string) bool {
	return name != "" && name != ".." && strings.IndexByte(name, '/') < 0
}

func pathError(op, name string, err error) error {
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// FileStat is the type and identity of a file. The zero FileStat describes nothing.
type FileStat struct {
	kind     fs.FileMode // its type bits
	dev, ino uint64
	mount    MountID
}

// IsZero reports whether s describes nothing.
func (s FileStat) IsZero() bool { return s == FileStat{} }

// Mode returns the type of the file, with or without its permissions.
func (s FileStat) Mode() fs.FileMode { return s.kind }

// Mount returns the mount of the file.
func (s FileStat) Mount() MountID { return s.mount }

// SameFile reports whether info describes the same file.
func (s FileStat) SameFile(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Ino == s.ino && stat.Dev == s.dev && info.Mode().Type() == s.kind
}

// stat describes name in the directory fd, or fd itself if name is "".
func stat(fd int, name string) (FileStat, error) {
	stat, err := statx(fd, name, unix.STATX_TYPE|unix.STATX_INO)
	if err == unix.ENOSYS {
		return statWithoutMount(fd, name)
	}
	if err != nil {
		return FileStat{}, err
	}
	return FileStat{
		kind: typeBits(uint32(stat.Mode)), ino: stat.Ino,
		dev: unix.Mkdev(stat.Dev_major, stat.Dev_minor), mount: mountOf(&stat),
	}, nil
}

// statWithoutMount is stat for a kernel without statx.
func statWithoutMount(fd int, name string) (FileStat, error) {
	stat, err := fstatat(fd, name)
	if err != nil {
		return FileStat{}, err
	}
	return FileStat{kind: typeBits(stat.Mode), dev: stat.Dev, ino: stat.Ino}, nil
}

// mountFields ask statx for the mount. The id of a mount is used again once it is unmounted; a
// unique id is not. A kernel before 6.8 has no unique ids, and returns the other kind.
const mountFields = unix.STATX_MNT_ID | unix.STATX_MNT_ID_UNIQUE

// mountOf returns the mount in the result of statx, 0 if the kernel did not fill it in.
func mountOf(stat *unix.Statx_t) MountID {
	if stat.Mask&mountFields == 0 {
		return 0
	}
	return MountID(stat.Mnt_id)
}

// statx returns the given fields and the mount of name in the directory fd, or of fd itself if name
// is "".
func statx(fd int, name string, fields int) (stat unix.Statx_t, err error) {
	err = unix.Statx(fd, name, statFlags(name), fields|mountFields, &stat)
	return stat, err
}

// fstatat is statx for a kernel without it. The mount remains unknown.
func fstatat(fd int, name string) (stat unix.Stat_t, err error) {
	err = unix.Fstatat(fd, name, &stat, statFlags(name))
	return stat, err
}

func statFlags(name string) int {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return flags
}

// typeBits returns the type bits of a mode of the system.
func typeBits(mode uint32) fs.FileMode {
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

// fileInfo is an [os.FileInfo]. Like that of package os, its Sys is a *[syscall.Stat_t].
type fileInfo struct {
	name string
	stat syscall.Stat_t
}

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return i.stat.Size }
func (i *fileInfo) IsDir() bool        { return i.stat.Mode&unix.S_IFMT == unix.S_IFDIR }
func (i *fileInfo) ModTime() time.Time { return time.Unix(i.stat.Mtim.Unix()) }
func (i *fileInfo) Sys() any           { return &i.stat }

func (i *fileInfo) Mode() fs.FileMode {
	mode := typeBits(i.stat.Mode) | fs.FileMode(i.stat.Mode).Perm()
	if i.stat.Mode&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if i.stat.Mode&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if i.stat.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// statAll is stat that returns everything that an [os.FileInfo] needs.
func statAll(fd int, name string) (*fileInfo, MountID, error) {
	stat, err := statx(fd, name, unix.STATX_BASIC_STATS)
	if err == unix.ENOSYS {
		info, err := statAllWithoutMount(fd, name)
		return info, 0, err
	}
	if err != nil {
		return nil, 0, err
	}
	i := &fileInfo{name: name}
	set(&i.stat.Dev, unix.Mkdev(stat.Dev_major, stat.Dev_minor))
	set(&i.stat.Rdev, unix.Mkdev(stat.Rdev_major, stat.Rdev_minor))
	set(&i.stat.Ino, stat.Ino)
	set(&i.stat.Mode, uint64(stat.Mode))
	set(&i.stat.Nlink, uint64(stat.Nlink))
	set(&i.stat.Uid, uint64(stat.Uid))
	set(&i.stat.Gid, uint64(stat.Gid))
	set(&i.stat.Size, stat.Size)
	set(&i.stat.Blocks, stat.Blocks)
	set(&i.stat.Blksize, uint64(stat.Blksize))
	setTime(&i.stat.Atim, stat.Atime)
	setTime(&i.stat.Mtim, stat.Mtime)
	setTime(&i.stat.Ctim, stat.Ctime)
	return i, mountOf(&stat), nil
}

// statAllWithoutMount is statAll for a kernel without statx.
func statAllWithoutMount(fd int, name string) (*fileInfo, error) {
	stat, err := fstatat(fd, name)
	if err != nil {
		return nil, err
	}
	return &fileInfo{name: name, stat: syscall.Stat_t{
		Dev: stat.Dev, Rdev: stat.Rdev, Ino: stat.Ino, Mode: stat.Mode, Nlink: stat.Nlink,
		Uid: stat.Uid, Gid: stat.Gid,
		Size: stat.Size, Blocks: stat.Blocks, Blksize: stat.Blksize,
		Atim: syscall.Timespec(stat.Atim), Mtim: syscall.Timespec(stat.Mtim),
		Ctim: syscall.Timespec(stat.Ctim),
	}}, nil
}

// set sets a field whose type depends on the architecture.
func set[T int32 | int64 | uint32 | uint64](field *T, value uint64) { *field = T(value) }

func setTime(field *syscall.Timespec, at unix.StatxTimestamp) {
	set(&field.Sec, uint64(at.Sec))
	set(&field.Nsec, uint64(at.Nsec))
}

// realPath returns the path of an open directory as the kernel knows it, with each name as it is
// listed: the kernel may know a directory by the name that somebody looked up. It fails for one
// that was deleted or has no path that this process can see.
func realPath(f *os.File) (string, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	var path string
	controlErr := conn.Control(func(fd uintptr) {
		path, err = os.Readlink(inProc(int(fd)))
	})
	if err := errors.Join(controlErr, err); err != nil {
		return "", err
	}
	// The kernel appends " (deleted)" to the path of a deleted directory. A name may end like that
	// too: for both, RealPath falls back to resolving the path.
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, " (deleted)") {
		return "", errNoRealPath
	}
	return listedPath(path), nil
}

// MountPoints returns the paths where something is mounted that this process can see, nil if the
// system does not tell.
func MountPoints() []string {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var points []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points = append(points, unescape(fields[4]))
		}
	}
	return points
}

// unescape decodes a path of the mount table, where "\040" is a space.
func unescape(path string) string {
	var out strings.Builder
	for {
		plain, rest, escaped := strings.Cut(path, `\`)
		out.WriteString(plain)
		if !escaped {
			return out.String()
		}
		path = rest
		if len(rest) >= 3 {
			if c, err := strconv.ParseUint(rest[:3], 8, 8); err == nil {
				out.WriteByte(byte(c))
				path = rest[3:]
				continue
			}
		}
		out.WriteByte('\\')
	}
}

// lockable reports whether TryLock may lock the file. On SMB a lock would keep others from reading.
func lockable(fd int) bool {
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return false
	}
	kind := uint32(system.Type)
	return kind != unix.CIFS_SUPER_MAGIC && kind != unix.SMB2_SUPER_MAGIC &&
		kind != unix.SMB_SUPER_MAGIC
}

package dirfd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// dirFlags open a directory to list it.
const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY

// Dir is an open directory. It is safe for concurrent use. Its descriptor stays open until Close
// was called and the last operation that uses it has returned.
type Dir struct {
	file *os.File
	guarded
	// file can still be listed: it was opened for that, and List has not been called
	unread atomic.Bool
}

// Open opens the directory at path, which the system resolves. It does not wait for a FIFO.
func Open(path string) (*Dir, error) {
	file, err := os.OpenFile(path+"/.", dirFlags, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{file: file}, nil
}

// Close closes the directory. A second Close does nothing.
func (d *Dir) Close() error {
	_ = d.file.Close()
	return nil
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
	return &Dir{file: os.NewFile(uintptr(fd), ""), guarded: d.below(stat)}
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

// Lstat describes the entry name, a link itself.
func (d *Dir) Lstat(name string) (os.FileInfo, error) {
	f, err := d.OpenFile(name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// List calls yield for each entry of the directory, in no order, until yield returns false. kind is
// the type bits of the entry. It returns nil if ctx ends.
func (d *Dir) List(ctx context.Context, yield func(name string, kind fs.FileMode) bool) error {
	if d.blocked != nil {
		return d.blocked
	}
	if d.unread.CompareAndSwap(true, false) { // a descriptor reads a directory once
		return list(ctx, d.file, yield)
	}
	again, err := d.OpenFile(".", dirFlags, 0)
	if err != nil {
		return err
	}
	defer again.Close()
	return list(ctx, again, yield)
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
	kind, err := d.system()
	return kind == unix.PROC_SUPER_MAGIC, err
}

// system returns the kind of the file system that the directory is in.
func (d *Dir) system() (kind int64, err error) {
	var is unix.Statfs_t
	err = d.do(".", func(fd int) error { return unix.Fstatfs(fd, &is) })
	return int64(is.Type), err
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
	return pathError("faccessat2", name, d.do(name, func(fd int) error {
		return unix.Faccessat(fd, name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
	}))
}

// Link gives the file name a second name in the same directory.
func (d *Dir) Link(name, newname string) error {
	return d.doBoth(name, d, newname, "linkat",
		func(olddir int, oldname string, newdir int, newname string) error {
			return unix.Linkat(olddir, oldname, newdir, newname, 0)
		})
}

// doBoth is do for an operation on name in d and newname in to. opName is for the error.
func (d *Dir) doBoth(
	name string, to *Dir, newname, opName string, op func(int, string, int, string) error,
) error {
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
	if name == "" || name == ".." || strings.IndexByte(name, '/') >= 0 {
		return syscall.EINVAL
	}
	return onDescriptor(d.file, op)
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
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var x unix.Statx_t
	err := unix.Statx(fd, name, flags, unix.STATX_TYPE|unix.STATX_INO|mountFields, &x)
	if err != nil {
		return FileStat{}, err
	}
	s := FileStat{kind: typeBits(uint32(x.Mode)), ino: x.Ino,
		dev: unix.Mkdev(x.Dev_major, x.Dev_minor)}
	if x.Mask&mountFields != 0 { // otherwise the kernel did not fill it in
		s.mount = MountID(x.Mnt_id)
	}
	return s, nil
}

// mountFields ask statx for the mount. The id of a mount is used again once it is unmounted; a
// unique id is not. A kernel before 6.8 has no unique ids, and returns the other kind.
const mountFields = unix.STATX_MNT_ID | unix.STATX_MNT_ID_UNIQUE

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

// realPath returns the path of an open directory as the kernel knows it, with each name as it is
// listed: the kernel may know a directory by the name that somebody looked up. It fails for one
// that was deleted or has no path that this process can see.
func realPath(f *os.File) (string, error) {
	var path string
	err := onDescriptor(f, func(fd int) (err error) {
		path, err = os.Readlink(inProc(fd))
		return err
	})
	if err != nil {
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

// unescape decodes a path of the mount table.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

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

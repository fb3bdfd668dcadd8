package workspace

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// handle is a directory that is held open: the one thing through which this package touches the disk.
// A name that its methods take is that of an entry, one component, or "." for the directory itself;
// every other is refused, and no link is ever followed. So nothing that is done through a handle
// can leave its directory, whatever happens to the disk meanwhile. What it opens or looks at must lie in
// a mount that is granted, which its children inherit (C7).
//
// It is safe for concurrent use. The descriptor lives until Close was called and nobody uses it any more.
type handle struct {
	fd      int
	granted *granted
	denied  Dir         // the denied directory that it is, or lies in
	unread  atomic.Bool // it was opened to be listed, and was not yet

	mu     sync.Mutex
	users  int
	closed bool
}

// openDirectory opens the directory at path, which it resolves as the system does. The "." keeps it
// from waiting at a FIFO.
func openDirectory(path string) (*handle, error) {
	var h *handle
	err := uninterrupted(func() error {
		fd, err := unix.Open(path+"/.", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		h = &handle{fd: fd, granted: &granted{policy: AnyMounts}}
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return h, nil
}

// into opens the directory name. It fails with ENOTDIR for a link.
func (h *handle) into(name string) (*handle, error) {
	got, seen, err := h.open(name, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return h.child(got, seen), nil
}

// child is the handle of a directory that h opened.
func (h *handle) child(fd int, seen sight) *handle {
	return &handle{fd: fd, granted: h.granted, denied: cmp.Or(h.denied, h.granted.deniedBy(seen))}
}

// open opens name, and looks at what it opened unless everything is granted. Directories are entered where
// nothing else may be done, so that ".." leads out again.
func (h *handle) open(name string, flags int, perm fs.FileMode) (got int, seen sight, err error) {
	openat := func(fd int) error {
		got, err = unix.Openat(fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	}
	if flags&unix.O_DIRECTORY != 0 {
		err = h.use(name, openat)
	} else {
		err = h.do(name, openat)
	}
	if err == nil && (h.granted.policy != AnyMounts || len(h.granted.denied) > 0) {
		if seen, err = see(got, ""); err == nil {
			err = h.granted.refused(seen.mount)
		}
		if err != nil {
			_ = unix.Close(got)
		}
	}
	return got, seen, named("openat", name, err)
}

// look looks at name, without opening it.
func (h *handle) look(name string) (sight, error) {
	var seen sight
	err := h.do(name, func(fd int) (err error) {
		seen, err = see(fd, name)
		return err
	})
	if err == nil {
		err = h.granted.refused(seen.mount)
	}
	return seen, named("statx", name, err)
}

// openRegular opens for reading the regular file name, which was seen to be one. It fails with errChanging
// if it is something else by now.
func (h *handle) openRegular(name string) (*os.File, error) {
	got, now, err := h.open(name, readFlags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, errChanging
	}
	if err != nil {
		return nil, err
	}
	if now == (sight{}) {
		now, err = see(got, "")
	}
	if err != nil || !now.isRegular() {
		_ = unix.Close(got)
		return nil, errChanging
	}
	return newFile(got, readFlags, name), nil
}

// OpenFile opens name. flags and perm are those of [os.OpenFile].
func (h *handle) OpenFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	got, _, err := h.open(name, flags, perm)
	if err != nil {
		return nil, err
	}
	return newFile(got, flags, name), nil
}

// newFile is an open file on which nothing waits: what only looks like a regular one, such as /proc/kmsg, fails with
// EAGAIN where there is nothing to be read. The runtime would wait for a descriptor that it was given as one that
// does not block, so it gets one that does, which is then changed back.
func newFile(fd, flags int, name string) *os.File {
	if flags&unix.O_NONBLOCK == 0 {
		return os.NewFile(uintptr(fd), name)
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&unix.O_APPEND)
	f := os.NewFile(uintptr(fd), name)
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&(unix.O_APPEND|unix.O_NONBLOCK))
	return f
}

// Open opens name for reading.
func (h *handle) Open(name string) (*os.File, error) { return h.OpenFile(name, readFlags, 0) }

// Lstat describes name, without opening it.
func (h *handle) Lstat(name string) (os.FileInfo, error) {
	f, err := h.OpenFile(name, lookFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// Readlink is the target of the link name.
func (h *handle) Readlink(name string) (string, error) {
	var target string
	err := h.do(name, func(fd int) error {
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

// Mkdir makes the directory name.
func (h *handle) Mkdir(name string, perm fs.FileMode) error {
	return named("mkdirat", name, h.do(name, func(fd int) error {
		return unix.Mkdirat(fd, name, uint32(perm.Perm()))
	}))
}

// Remove removes name: a directory if it is empty, a link itself.
func (h *handle) Remove(name string) error {
	return named("unlinkat", name, h.do(name, func(fd int) error {
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

// Rename gives oldname the name newname, in the same directory.
func (h *handle) Rename(oldname, newname string) error { return h.MoveTo(oldname, h, newname) }

// MoveTo moves name to newname in the directory to. It fails with [syscall.EXDEV] if that is
// on another file system, or where the system cannot move between two handles.
func (h *handle) MoveTo(name string, to *handle, newname string) error {
	return h.with(name, to, newname, "renameat", unix.Renameat)
}

// Link gives the file oldname a further name in the same directory.
func (h *handle) Link(oldname, newname string) error {
	return h.with(oldname, h, newname, "linkat", func(oldfd int, oldname string, newfd int, newname string) error {
		return unix.Linkat(oldfd, oldname, newfd, newname, 0)
	})
}

// Close lets the directory go. A second Close does nothing.
func (h *handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		h.release()
	}
	return nil
}

// do is use, but not in a denied directory.
func (h *handle) do(name string, op func(fd int) error) error {
	if h.denied != (Dir{}) {
		return &denialError{h.denied}
	}
	return h.use(name, op)
}

// use calls op with the descriptor. name must be a name that op may use.
func (h *handle) use(name string, op func(fd int) error) error {
	if !inside(name) {
		return syscall.EINVAL
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return fs.ErrClosed
	}
	h.users++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.users--
		h.release()
		h.mu.Unlock()
	}()
	return uninterrupted(func() error { return op(h.fd) })
}

// with calls op with a name here and one in another directory.
func (h *handle) with(name string, to *handle, newname, as string, op func(int, string, int, string) error) error {
	err := h.do(name, func(fd int) error {
		return to.do(newname, func(tofd int) error { return op(fd, name, tofd, newname) })
	})
	if err != nil {
		return &os.LinkError{Op: as, Old: name, New: newname, Err: err}
	}
	return nil
}

// release closes the descriptor once nobody needs it. The caller holds mu.
func (h *handle) release() {
	if h.closed && h.users == 0 {
		_ = unix.Close(h.fd)
	}
}

// inside reports whether name can only mean an entry of a directory, or the directory itself.
func inside(name string) bool {
	return name != "" && name != ".." && strings.IndexByte(name, '/') < 0
}

// uninterrupted does it again as long as a signal interrupts it.
func uninterrupted(it func() error) error {
	for {
		if err := it(); err != unix.EINTR {
			return err
		}
	}
}

func named(op, name string, err error) error {
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

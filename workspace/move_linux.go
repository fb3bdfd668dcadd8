package workspace

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// move gives what is in one slot the name of another. It fails with EXDEV between file systems.
func move(_ *Workspace, from, to slot, create Create) error {
	if create == CreateOnly {
		if err := from.dir.moveNew(from.name, to.dir, to.name); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return from.dir.MoveTo(from.name, to.dir, to.name)
}

// moveNew is MoveTo that takes the name from nothing that bears it. It fails with
// [errors.ErrUnsupported] where the file system has no such thing.
func (h *handle) moveNew(name string, to *handle, newname string) error {
	err := h.with(name, to, newname, "renameat2", func(olddir int, oldname string, newdir int, newname string) error {
		return unix.Renameat2(olddir, oldname, newdir, newname, unix.RENAME_NOREPLACE)
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

// symlink makes a link with the name and the target, whatever that is.
func (h *handle) symlink(target, name string) error {
	return named("symlinkat", name, h.do(name, func(fd int) error {
		return unix.Symlinkat(target, fd, name)
	}))
}

// setTimes sets the times of f, an open file that was found in h as name. Here it is f that counts: what has its name
// by now may be a hard link that leads out. A zero time is left as it is.
func (*handle) setTimes(f *os.File, name string, accessed, modified time.Time) error {
	times := make([]unix.Timespec, 2)
	for i, t := range []time.Time{accessed, modified} {
		times[i] = unix.Timespec{Nsec: unix.UTIME_OMIT}
		if !t.IsZero() {
			var err error
			if times[i], err = unix.TimeToTimespec(t); err != nil {
				return named("utimensat", name, err)
			}
		}
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = conn.Control(func(fd uintptr) {
		set = unix.UtimesNanoAt(int(fd), "", times, unix.AT_EMPTY_PATH)
	})
	return errors.Join(err, named("utimensat", name, set))
}

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

var errSpecialMode = errors.New("only the permission bits 0777 may be set")

// HardLinks says what to do with a file that has more than one name, before it is changed in
// place: under all of them, in directories that may be outside (C12).
type HardLinks int

const (
	// RefuseHardLinks fails with a *[HardLinkError].
	RefuseHardLinks HardLinks = iota
	// AllowHardLinks changes the file, whoever else has a name for it.
	AllowHardLinks
)

// OpenOptions configure [Workspace.OpenFile].
type OpenOptions struct {
	// Perm are the permissions of a file that is made, before the process's umask. Default 0666.
	Perm fs.FileMode
	// HardLinks says what to do with a file that has more than one name. Default RefuseHardLinks.
	HardLinks HardLinks
}

// openFlags are the flags of [os.OpenFile] that OpenFile takes.
const openFlags = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREATE | os.O_EXCL | os.O_SYNC | os.O_TRUNC

// OpenFile opens a regular file by the flags of [os.OpenFile], to be changed in place; it never waits (C6). A
// link is followed as far as it may be, so that what it leads to is opened, or made, and the link stays (C12);
// with [os.O_EXCL] whatever bears the name is in the way, a link too. To replace a
// file as a whole, see [Workspace.WriteFile]. The caller closes the file.
//
// Besides those of [Workspace], the error may be a *[HardLinkError], and [fs.ErrPermission] for
// a file that is marked as read-only. Nothing was changed then.
func (w *Workspace) OpenFile(path string, flag int, o OpenOptions) (*WritableFile, error) {
	return w.openFileAt(path, flag, o, Ref{})
}

// openFileAt is OpenFile of what must be at a place, unless that is zero.
func (w *Workspace) openFileAt(path string, flag int, o OpenOptions, at Ref) (*WritableFile, error) {
	if err := w.begin(); err != nil {
		return nil, err
	}
	defer w.end()
	setDefault(&o.Perm, 0o666)
	a, err := parseNew("open", path, o.Perm)
	if err != nil {
		return nil, err
	}
	if !validFlags(flag) {
		return nil, failed("open", path, syscall.EINVAL)
	}
	p := opening{w: w, asked: a, flag: flag, o: o, at: at}
	switch {
	case flag&os.O_CREATE == 0:
		err = w.walk(a, followLast, p.arrive)
	case flag&os.O_EXCL == 0:
		err = w.walk(a, orMissing, p.arrive)
	default:
		err = w.atSlot(a, p.makeNew)
	}
	if err != nil {
		return nil, err
	}
	return p.file, nil
}

func validFlags(flag int) bool {
	switch access := flag & (os.O_WRONLY | os.O_RDWR); {
	case flag&^openFlags != 0, access == os.O_WRONLY|os.O_RDWR:
		return false
	case access == 0:
		return flag&(os.O_APPEND|os.O_TRUNC) == 0
	default:
		return true
	}
}

// opening is one call of OpenFile.
type opening struct {
	w     *Workspace
	asked asked
	flag  int
	o     OpenOptions
	at    Ref // where it must be, or zero
	file  *WritableFile
}

func (p *opening) arrive(end arrival) error {
	if err := expect(p.asked.path, p.at, p.w.ref(end.root, end.at)); err != nil {
		return err
	}
	if end.info == nil {
		err := p.create(end.dir, end.name, end.root, end.at)
		if errors.Is(err, fs.ErrExist) {
			return p.failed(errChanging)
		}
		return err
	}
	if !end.info.Mode().IsRegular() {
		return unfit(p.asked.path, end.info.Mode())
	}
	if p.flag&(os.O_WRONLY|os.O_RDWR) != 0 && readOnlyFile(end.info) {
		return p.failed(fs.ErrPermission)
	}
	// What a truncation would destroy is looked at first.
	keep := p.flag & (os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_SYNC)
	f, err := end.dir.OpenFile(end.name, keep|readFlags, 0)
	if err != nil {
		return p.failed(recheck(end.dir, end.name, end.info, err))
	}
	if err = p.judge(f, end); err == nil && p.flag&os.O_TRUNC != 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		_ = f.Close()
		return p.failed(err)
	}
	p.opened(f, end.root, end.at)
	return nil
}

// judge fails unless f is the file that was arrived at, and may be changed in place.
func (p *opening) judge(f *os.File, end arrival) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !os.SameFile(info, end.info):
		return errChanging
	case p.flag&(os.O_WRONLY|os.O_RDWR) == 0:
		return nil
	default:
		return end.inPlace(p.asked.path, f, info, p.o.HardLinks)
	}
}

// makeNew makes the file if nothing bears its name.
func (p *opening) makeNew(s slot) error {
	if err := expect(p.asked.path, p.at, p.w.ref(s.root, s.at)); err != nil {
		return err
	}
	switch {
	case s.name == "" || s.info != nil:
		return p.failed(syscall.EEXIST)
	case s.asked.dir:
		return p.failed(syscall.EISDIR)
	default:
		return p.create(s.dir, s.name, s.root, s.at)
	}
}

func (p *opening) create(dir *handle, name string, root int, at location) error {
	// With O_EXCL the system follows no link and opens nothing that is there.
	f, err := dir.OpenFile(name, p.flag&^os.O_TRUNC|os.O_CREATE|os.O_EXCL, p.o.Perm)
	if err != nil {
		return p.failed(err)
	}
	p.opened(f, root, at)
	return nil
}

func (p *opening) opened(f *os.File, root int, at location) {
	p.file = &WritableFile{File: &File{f, p.w.ref(root, at)}, path: p.asked.path, appends: p.flag&os.O_APPEND != 0}
}

func (p *opening) failed(err error) error {
	if linked := (*HardLinkError)(nil); errors.As(err, &linked) {
		return linked
	}
	return failed("open", p.asked.path, err)
}

// inPlace fails if f, which was opened where the path led, has names that it must not be changed under.
func (end arrival) inPlace(path string, f *os.File, info os.FileInfo, allowed HardLinks) error {
	if allowed == AllowHardLinks {
		return nil
	}
	n, err := links(f, info)
	switch {
	case err != nil:
		return err
	case n > 1:
		return &HardLinkError{Path: path, Links: n}
	default:
		return end.dir.stillNamed(f, end.name)
	}
}

// WritableFile is a regular file that was opened by [Workspace.OpenFile]. It is safe for concurrent use as far as
// an [os.File] is. It stays as it was opened after its Workspace was closed.
type WritableFile struct {
	*File
	path    string
	appends bool
}

// Write writes on from where the last Read or Write ended, or at the end of a file that was opened with
// [os.O_APPEND], as [io.Writer] says.
func (f *WritableFile) Write(p []byte) (int, error) { return f.file.Write(p) }

// WriteString is Write of a string.
func (f *WritableFile) WriteString(s string) (int, error) { return f.file.WriteString(s) }

// WriteAt writes at an offset, as [io.WriterAt] says. It fails for a file opened with [os.O_APPEND].
func (f *WritableFile) WriteAt(p []byte, offset int64) (int, error) {
	if f.appends { // Linux would append
		return 0, failed("write", f.path, syscall.EINVAL)
	}
	return f.file.WriteAt(p, offset)
}

// Truncate gives the file a size, in bytes. What is added is zeros.
func (f *WritableFile) Truncate(size int64) error { return f.file.Truncate(size) }

// Sync waits until what was written is on the disk.
func (f *WritableFile) Sync() error { return f.file.Sync() }

package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// Directory is an open directory. It opens its entries by name, through its handle: no path is
// resolved for each of them, and changes to the directory's path do not matter. It is safe for
// concurrent use. Once its Workspace was closed it can be listed, but opens nothing.
type Directory struct {
	w      *Workspace
	handle *dirfd.Dir
	at     location
	ref    Ref // the same as at
}

// Entry is a name in a directory.
type Entry struct {
	Name string
	Type fs.FileMode // type bits only; a link is a link
}

var errIsLink = errors.New("it is a link")

// OpenDir opens a directory. The caller closes it.
func (w *Workspace) OpenDir(path string) (*Directory, error) {
	a, err := w.beginAt(path)
	if err != nil {
		return nil, err
	}
	defer w.finish()
	return w.openDir(a)
}

func (w *Workspace) openDir(a parsedPath) (d *Directory, err error) {
	err = w.resolve(a, followLast, func(found arrival) error {
		if !found.stat.IsDir() {
			return failed("open", a.path, syscall.ENOTDIR)
		}
		handle, err := found.dir.OpenDirToList(cmp.Or(found.name, "."))
		if notDirectory(err) {
			return dirfd.ErrChanged
		}
		if err != nil {
			return failed("open", a.path, err)
		}
		d = &Directory{w, handle, found.at, found.ref}
		return nil
	})
	return d, err
}

// Ref returns where the directory was when it was opened.
func (d *Directory) Ref() Ref { return d.ref }

// refOf returns the Ref of an entry. An entry that is a root belongs to that root.
func (d *Directory) refOf(e Entry) Ref {
	if e.Type.IsDir() {
		if root, ok := d.w.opened.find(d.at.child(e.Name)); ok {
			return d.w.opened[root].Ref()
		}
	}
	return d.ref.Child(e.Name)
}

// Entries lists the directory, sorted by name. If there are more than [Options].MaxEntries, it
// returns an arbitrary selection of that size and a *[LimitError]. With another error, an
// *[fs.PathError] or the context's, it returns what it has read so far.
func (d *Directory) Entries(ctx context.Context) ([]Entry, error) {
	var entries []Entry
	err := d.handle.List(ctx, func(name string, kind fs.FileMode) bool {
		entries = append(entries, Entry{name, kind})
		return len(entries) <= d.w.maxEntries
	})
	switch {
	case err != nil:
		err = d.checkReplaced(failed("readdir", d.ref.Path(), err))
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case len(entries) > d.w.maxEntries:
		entries = entries[:d.w.maxEntries]
		err = &LimitError{Path: d.ref.Path(), What: "entries", Limit: int64(d.w.maxEntries)}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, err
}

// checkReplaced returns err, or a ReplacedError if it means that the directory is gone and its root
// was replaced.
func (d *Directory) checkReplaced(err error) error {
	if d.w.begin() != nil {
		return err
	}
	defer d.w.finish()
	return d.w.checkReplaced(d.ref.Path(), d.ref.Root().Index, err)
}

// begin starts an operation on the entry name, which must end with d.w.finish unless begin fails.
func (d *Directory) begin(name string) error {
	if err := d.w.begin(); err != nil {
		return err
	}
	err := parseName(name)
	if err != nil {
		d.w.finish()
	}
	return err
}

// Lstat describes the entry name, a link itself. name is one path component.
func (d *Directory) Lstat(name string) (Info, error) {
	if err := d.begin(name); err != nil {
		return Info{}, err
	}
	defer d.w.finish()
	info, err := d.lstat(name)
	if err != nil {
		return Info{}, err
	}
	return Info{info, d.refOf(Entry{name, info.Mode().Type()}), name}, nil
}

// OpenDir opens the directory name, or the one that a link leads to, as [Workspace.OpenDir] does.
// name is one path component. The caller closes it.
func (d *Directory) OpenDir(name string) (*Directory, error) {
	if err := d.begin(name); err != nil {
		return nil, err
	}
	defer d.w.finish()
	child, err := d.openDir(name)
	if errors.Is(err, errIsLink) {
		return d.w.openDir(d.parsed(name))
	}
	return child, err
}

// Close closes the directory.
func (d *Directory) Close() error { return d.handle.Close() }

func (d *Directory) lstat(name string) (os.FileInfo, error) {
	if err := d.checkDenied(name); err != nil {
		return nil, err
	}
	info, err := d.handle.Lstat(name)
	if err != nil {
		return nil, d.failed("lstat", name, err)
	}
	return info, nil
}

// checkDenied returns a *DeniedError if the policy denies name.
func (d *Directory) checkDenied(name string) error {
	if len(d.w.denied) == 0 {
		return nil
	}
	return d.w.denied.check(d.path(name), d.at.child(name))
}

func (d *Directory) openFile(name string) (file *File, err error) {
	if err := d.checkDenied(name); err != nil {
		return nil, err
	}
	err = retry(d.path(name), func() error {
		stat, err := d.handle.Stat(name)
		switch {
		case err != nil:
			return d.failed("open", name, err)
		case stat.IsLink():
			file, err = d.w.openFile(d.parsed(name))
			return err
		}
		f, err := openRegular(d.handle, name, stat, d.path(name))
		if err != nil {
			return err
		}
		file, err = d.w.checked(&File{f, d.ref.Child(name)}, d.path(name))
		return err
	})
	return file, err
}

// openEntry is openFile for an entry that was listed. For a regular file it saves a system call.
func (d *Directory) openEntry(e Entry) (*File, error) {
	if e.Type.IsRegular() && d.checkDenied(e.Name) == nil {
		f, err := d.handle.OpenRegular(e.Name)
		if err == nil {
			return d.w.checked(&File{f, d.ref.Child(e.Name)}, d.path(e.Name))
		}
	}
	return d.openFile(e.Name)
}

// openDir opens the directory name. For a link it fails with errIsLink.
func (d *Directory) openDir(name string) (child *Directory, err error) {
	at := d.at.child(name)
	if root, ok := d.w.opened.find(at); ok {
		return d.w.openRootDir(d.w.opened[root])
	}
	if err := d.checkDenied(name); err != nil {
		return nil, err
	}
	handle, err := d.handle.OpenDirToList(name)
	if err == nil && handle.Blocked() != nil {
		_ = handle.Close()
		return nil, d.failed("open", name, handle.Blocked())
	}
	if err == nil {
		return &Directory{d.w, handle, at, d.ref.Child(name)}, nil
	}
	if notDirectory(err) {
		if stat, statErr := d.handle.Stat(name); statErr == nil && stat.IsLink() {
			return nil, errIsLink
		}
	}
	return nil, d.failed("open", name, err)
}

// openRootDir opens the directory of a root.
func (w *Workspace) openRootDir(root *openRoot) (*Directory, error) {
	handle, err := root.handle.OpenDirToList(".")
	if err != nil {
		return nil, failed("open", root.Dir.path, err)
	}
	return &Directory{w, handle, root.at, root.Ref()}, nil
}

// parsed returns the path of name in the directory.
func (d *Directory) parsed(name string) parsedPath {
	return parsedPath{path: d.path(name), at: d.at.child(name)}
}

func (d *Directory) path(name string) string { return d.ref.Child(name).Path() }

func (d *Directory) failed(op, name string, err error) error {
	return failed(op, d.path(name), err)
}

// Stat describes the directory itself.
func (d *Directory) Stat() (Info, error) {
	info, err := d.handle.Lstat(".")
	if err != nil {
		return Info{}, failed("stat", d.ref.Path(), err)
	}
	return Info{info, d.ref, d.ref.Name()}, nil
}

// ReadFile reads the entry e, which was listed: a regular file, or a link to one. The content is in
// buf, or in a larger buffer if it does not fit; it is nil if the file has more than limit bytes.
func (d *Directory) ReadFile(e Entry, buf []byte, limit int64) ([]byte, Info, error) {
	if err := d.begin(e.Name); err != nil {
		return nil, Info{}, err
	}
	defer d.w.finish()
	f, err := d.openEntry(e)
	if err != nil {
		return nil, Info{}, err
	}
	defer f.Close()
	content, info, err := dirfd.ReadFile(f.file, buf, limit)
	if err != nil {
		return nil, Info{}, d.failed("read", e.Name, err)
	}
	return content, Info{info, f.ref, e.Name}, nil
}

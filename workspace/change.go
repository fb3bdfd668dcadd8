package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// Mkdir creates a directory. Its parent must exist. If something already
// has the name, a link included, the error is [fs.ErrExist]. at, unless zero, is where path must
// still lead, as [Workspace.MkdirTarget] returned it: if it now points somewhere else, the error is
// a *[MovedError].
func (w *Workspace) Mkdir(path string, at Ref) error {
	_, err := w.change(path, func(t target) error {
		if err := w.expect(path, at, t); err != nil {
			return err
		}
		if err := t.checkFree("mkdir"); err != nil {
			return err
		}
		if err := w.Check(Access{Kind: Change, Path: path, At: w.ref(t.root, t.at)}); err != nil {
			return err
		}
		if err := t.dir.Mkdir(t.name, 0o777); err != nil {
			return failed("mkdir", path, err)
		}
		return nil
	})
	return err
}

// RemoveOptions configure [Workspace.Remove].
type RemoveOptions struct {
	// At, unless zero, is where path must still lead, as [Workspace.RemoveTarget] returned it. If
	// it now points somewhere else, the error is a *[MovedError].
	At Ref
	// Directory, unless zero, describes the directory that must still be there. If something else
	// is there, the error is a *[ChangedError].
	Directory Info
	// IfUnchanged, unless zero, is the version that the file must still have. If it has another,
	// the error is a *[ChangedError].
	IfUnchanged Version
}

// Remove removes the file or empty directory at path. It removes a link itself, wherever it points,
// and a special file without opening it. For a root, a denied directory, and a directory that holds
// one, the error is a *[ProtectedError].
func (w *Workspace) Remove(path string, o RemoveOptions) error {
	_, err := w.change(path, func(t target) error {
		if err := w.checkRemovable("remove", t); err != nil {
			return err
		}
		if err := w.expect(path, o.At, t); err != nil {
			return err
		}
		was := o.Directory.FileInfo
		if was != nil && !(t.info.IsDir() && os.SameFile(was, t.info)) {
			return &ChangedError{Path: path}
		}
		if err := w.Check(Access{Kind: Change, Path: path, At: w.ref(t.root, t.at)}); err != nil {
			return err
		}
		return w.whileLocked(t, func() error {
			if err := t.checkVersion(o.IfUnchanged); err != nil {
				return err
			}
			if err := t.dir.Remove(t.name); err != nil {
				return failed("remove", path, err)
			}
			return nil
		})
	})
	return err
}

// Rename moves the file, directory or link at from to the path to, in the same root or another on
// the same file system. It moves a link itself, not its target. Rename replaces nothing: if
// something already has the new name the error is [fs.ErrExist]. Between file systems it is
// [syscall.EXDEV], and for a root, a denied directory, or a directory that holds one a
// *[ProtectedError]. at and toAt, unless zero, are where the paths must still lead, as
// [Workspace.RenameTarget] returned them: if one now points somewhere else, the error is a
// *[MovedError].
func (w *Workspace) Rename(from, to string, at, toAt Ref) error {
	destination, err := parse(to)
	if err != nil {
		return err
	}
	_, err = w.change(from, func(t target) error {
		if err := w.checkRemovable("rename", t); err != nil {
			return err
		}
		if err := w.expect(from, at, t); err != nil {
			return err
		}
		return w.targetOnce(destination, func(new target) error {
			if err := w.Check(Access{Kind: Move, Path: from, At: w.ref(t.root, t.at),
				Folder: t.info.IsDir(), ToPath: to, To: w.ref(new.root, new.at)}); err != nil {
				return err
			}
			return w.whileLocked(t, func() error { return w.move(t, new, toAt) })
		})
	})
	return err
}

// whileLocked calls change while nobody else changes the file t. Only regular files are locked.
func (w *Workspace) whileLocked(t target, change func() error) error {
	if !t.info.Mode().IsRegular() {
		return change()
	}
	ctx := context.Background()
	lock, now, err := w.lock(ctx, t.dir, t.name, w.ref(t.root, t.at))
	if err != nil {
		return w.lockError(ctx, t.asked.path, err)
	}
	defer lock.Unlock()
	if now == nil || !os.SameFile(now, t.info) {
		return dirfd.ErrChanged
	}
	return change()
}

// checkVersion returns a *ChangedError unless the file t has the version, if that is not zero.
func (t target) checkVersion(version Version) error {
	if version.isZero() {
		return nil
	}
	r := replacement{asked: t.asked, dir: t.dir, name: t.name, old: t.info, version: version}
	return r.check(t.name)
}

// move gives the entry from the free name to.
func (w *Workspace) move(from, to target, expected Ref) error {
	if err := w.expect(to.asked.path, expected, to); err != nil {
		return err
	}
	if to.name == "" {
		return w.protected(to)
	}
	if err := to.checkFree("rename"); err != nil {
		return err
	}
	var err error
	switch {
	case to.at.below(from.at): // a directory into itself
		err = syscall.EINVAL
	case to.asked.dir && !from.info.IsDir():
		err = syscall.ENOTDIR
	default:
		err = renameNew(from, to)
	}
	if err != nil {
		return failed("rename", from.asked.path, err)
	}
	return nil
}

// renameNew moves the entry from to the unused name to.
func renameNew(from, to target) error {
	err := from.dir.RenameNew(from.name, to.dir, to.name)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if _, err := to.dir.Lstat(to.name); !errors.Is(err, fs.ErrNotExist) {
		return syscall.EEXIST
	}
	return from.dir.Rename(from.name, to.dir, to.name)
}

// MkdirTarget returns where [Workspace.Mkdir] would make a directory, and fails where Mkdir would.
// It changes nothing.
func (w *Workspace) MkdirTarget(path string) (Ref, error) {
	return w.change(path, func(t target) error { return t.checkFree("mkdir") })
}

// RemoveTarget describes what [Workspace.Remove] would remove: a link itself, not what it points
// to. It fails where Remove would, except that it does not look into a directory. It changes
// nothing.
func (w *Workspace) RemoveTarget(path string) (Info, error) {
	var info fs.FileInfo
	ref, err := w.change(path, func(t target) error {
		info = t.info
		return w.checkRemovable("remove", t)
	})
	if err != nil {
		return Info{}, err
	}
	return Info{info, ref, info.Name()}, nil
}

// RenameTarget describes what [Workspace.Rename] would move, and returns where to. It fails where
// Rename would, except when a directory is moved into itself or to another file system. It changes
// nothing.
func (w *Workspace) RenameTarget(from, to string) (Info, Ref, error) {
	info, err := w.RemoveTarget(from)
	if err != nil {
		return Info{}, Ref{}, err
	}
	ref, err := w.change(to, func(t target) error { return t.checkFree("rename") })
	return info, ref, err
}

// target is a name in an open directory at which an entry will be created, removed or moved. All
// operations use the directory's handle and the name, so that later changes to the path cannot
// redirect them.
type target struct {
	asked parsedPath
	dir   *dirfd.Dir
	name  string      // "" for a root, which is not in a directory
	info  os.FileInfo // of the entry, or nil
	at    location
	root  int
}

// change calls use with the target that path names, and returns where that is. It starts again if
// something changes on the way.
func (w *Workspace) change(path string, use func(target) error) (ref Ref, err error) {
	a, err := w.beginAt(path)
	if err != nil {
		return Ref{}, err
	}
	defer w.end()
	err = retry(func() error {
		return w.targetOnce(a, func(t target) error {
			ref = w.ref(t.root, t.at)
			if err := ref.checkGrant(); err != nil { // before anybody is asked
				return err
			}
			return use(t)
		})
	})
	if err == dirfd.ErrChanged {
		err = failed("open", path, err)
	}
	if err != nil {
		return Ref{}, err
	}
	return ref, nil
}

func (w *Workspace) targetOnce(a parsedPath, use func(target) error) error {
	entry := a
	entry.dir = false // "l/" names the entry l too
	found := false
	err := w.resolveOnce(entry, keepLast, func(end arrival) error {
		found = true
		return use(target{a, end.dir, end.name, end.info, end.at, end.root})
	})
	if found || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return w.freeTargetOnce(a, err, use)
}

// freeTargetOnce is like targetOnce, but for a path that does not exist; missing is the error of
// resolving it. Its directory must exist.
func (w *Workspace) freeTargetOnce(a parsedPath, missing error, use func(target) error) error {
	n := len(a.at.names) - 1
	if n < 0 || a.at.names[n] == ".." {
		return missing
	}
	name := a.at.names[n]
	parent := parsedPath{path: a.path, at: location{a.at.top, a.at.names[:n:n]}, dir: true}
	return w.resolveOnce(parent, followLast, func(end arrival) error {
		dir := end.dir
		if end.name != "" {
			var err error
			if dir, err = openSameDir(end.dir, end.name, end.info); err != nil {
				return failed("open", a.path, err)
			}
			defer dir.Close()
		}
		t := target{asked: a, dir: dir, name: name, at: end.at.child(name), root: end.root}
		if err := w.checkLocation(a.path, t.at); err != nil {
			return err
		}
		switch _, err := dir.Lstat(name); {
		case err == nil:
			return failed("open", a.path, dirfd.ErrChanged)
		case !errors.Is(err, fs.ErrNotExist):
			return failed("open", a.path, err)
		}
		return use(t)
	})
}

// expect returns a *MovedError if t is not at the expected place. The zero Ref expects nothing.
func (w *Workspace) expect(path string, expected Ref, t target) error {
	if now := w.ref(t.root, t.at); expected != (Ref{}) && expected != now {
		return &MovedError{Path: path, Was: expected, Now: now}
	}
	return nil
}

// checkRemovable returns an error unless op may take away the entry t.
func (w *Workspace) checkRemovable(op string, t target) error {
	switch {
	case t.name == "":
		return w.protected(t)
	case t.info == nil:
		return failed(op, t.asked.path, syscall.ENOENT)
	case t.asked.dir && !t.info.IsDir():
		return failed(op, t.asked.path, syscall.ENOTDIR)
	default:
		return w.checkHoldsNone(t)
	}
}

// checkHoldsNone returns a *ProtectedError if t is or contains a root or a denied directory. If
// that were moved, it would escape the session's roots or policy.
func (w *Workspace) checkHoldsNone(t target) error {
	for _, d := range w.entries {
		if d.at.below(t.at) {
			return &ProtectedError{Path: t.asked.path, Dir: w.opened[d.root].Dir}
		}
	}
	for _, d := range w.denied {
		if d.at.below(t.at) {
			return &ProtectedError{Path: t.asked.path, Dir: d.dir}
		}
	}
	if !t.info.IsDir() {
		return nil
	}
	// A root may have been moved here since it was opened.
	for i, h := range w.handles {
		if root, err := h.Lstat("."); err == nil && os.SameFile(root, t.info) {
			return &ProtectedError{Path: t.asked.path, Dir: w.opened[i].Dir}
		}
	}
	return nil
}

// checkFree returns an error if something has the target's name.
func (t target) checkFree(op string) error {
	if t.name == "" || t.info != nil {
		return failed(op, t.asked.path, syscall.EEXIST)
	}
	return nil
}

func (w *Workspace) protected(t target) error {
	return &ProtectedError{Path: t.asked.path, Dir: w.opened[t.root].Dir}
}

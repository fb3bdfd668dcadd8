package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// Mkdir creates a directory. Its parent must exist. If something already has the name, a link
// included, the error is [fs.ErrExist]. at, unless zero, is where path must still lead, as
// [Workspace.MkdirTarget] returned it: if it now points somewhere else, the error is a
// *[MovedError].
func (w *Workspace) Mkdir(path string, at Ref) error {
	_, err := w.change(path, toChange, func(found arrival) error {
		if err := found.expect(at); err != nil {
			return err
		}
		if err := found.checkFree("mkdir"); err != nil {
			return err
		}
		if err := w.Check(Access{Kind: Change, Path: path, At: found.ref}); err != nil {
			return err
		}
		if err := found.dir.Mkdir(found.name, 0o777); err != nil {
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
	// Same, unless zero, describes the entry that must still be there. If something else is there,
	// the error is a *[ChangedError].
	Same Info
	// IfUnchanged, unless zero, is the version that the file must still have. If it has another,
	// the error is a *[ChangedError].
	IfUnchanged Version
}

// Remove removes the file or empty directory at path. It removes a link itself, wherever it points,
// and a special file without opening it. For a root, a denied directory, and a directory that holds
// one, the error is a *[ProtectedError].
func (w *Workspace) Remove(path string, o RemoveOptions) error {
	_, err := w.change(path, toChange, func(found arrival) error {
		info, err := w.removable("remove", found)
		if err != nil {
			return err
		}
		if err := found.expect(o.At); err != nil {
			return err
		}
		if was := o.Same.FileInfo; was != nil && !os.SameFile(was, info) {
			return &ChangedError{Path: path}
		}
		if err := w.Check(Access{Kind: Change, Path: path, At: found.ref}); err != nil {
			return err
		}
		return w.withLock(found, func() error {
			if err := found.checkIs(found.name, info, o.IfUnchanged); err != nil {
				return err
			}
			if err := found.dir.Remove(found.name); err != nil {
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
	_, err = w.change(from, toChange, func(old arrival) error {
		if _, err := w.removable("rename", old); err != nil {
			return err
		}
		if err := old.expect(at); err != nil {
			return err
		}
		return w.resolveOnce(destination, toChange, func(new arrival) error {
			if err := w.Check(Access{Kind: Move, Path: from, At: old.ref,
				Folder: old.stat.IsDir(), ToPath: to, To: new.ref}); err != nil {
				return err
			}
			return w.withLock(old, func() error { return move(old, new, toAt) })
		})
	})
	return err
}

// withLock calls change while nobody else changes the file where a path led. Only regular files
// are locked.
func (w *Workspace) withLock(found arrival, change func() error) error {
	if !found.stat.IsRegular() {
		return change()
	}
	lock, now, err := w.lock(context.Background(), found)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if now == nil || !found.stat.SameFile(now) {
		return dirfd.ErrChanged
	}
	return change()
}

// move gives the entry from the free name to.
func move(from, to arrival, expected Ref) error {
	if err := to.expect(expected); err != nil {
		return err
	}
	if to.name == "" {
		return to.protected()
	}
	if err := to.checkFree("rename"); err != nil {
		return err
	}
	var err error
	switch {
	case to.at.below(from.at): // a directory into itself
		err = syscall.EINVAL
	case to.asked.dir && !from.stat.IsDir():
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
func renameNew(from, to arrival) error {
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
	return w.change(path, toChange, func(found arrival) error { return found.checkFree("mkdir") })
}

// RemoveTarget describes what [Workspace.Remove] would remove: a link itself, not what it points
// to. It fails where Remove would, except that it does not look into a directory. It changes
// nothing.
func (w *Workspace) RemoveTarget(path string) (Info, error) {
	var info fs.FileInfo
	ref, err := w.change(path, toChange, func(found arrival) (err error) {
		info, err = w.removable("remove", found)
		return err
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
	ref, err := w.change(to, toChange, func(found arrival) error { return found.checkFree("rename") })
	return info, ref, err
}

// change calls use with where path leads, and returns that. It refuses what is read-only before use
// asks anybody.
func (w *Workspace) change(path string, want ending, use func(arrival) error) (ref Ref, err error) {
	err = w.resolvePath(path, want, func(found arrival) error {
		if err := want.checkKind(found); err != nil {
			return err
		}
		if err := found.ref.checkGrant(); err != nil {
			return err
		}
		ref = found.ref
		return use(found)
	})
	if err != nil {
		return Ref{}, err
	}
	return ref, nil
}

// expect returns a *MovedError if the path led elsewhere than to was. The zero Ref expects nothing.
func (found arrival) expect(was Ref) error {
	if was != (Ref{}) && was != found.ref {
		return &MovedError{Path: found.asked.path, Was: was, Now: found.ref}
	}
	return nil
}

// removable describes the entry where the path led, unless op may not take it away.
func (w *Workspace) removable(op string, found arrival) (os.FileInfo, error) {
	switch {
	case found.name == "":
		return nil, found.protected()
	case !found.exists():
		return nil, failed(op, found.asked.path, syscall.ENOENT)
	case found.asked.dir && !found.stat.IsDir():
		return nil, failed(op, found.asked.path, syscall.ENOTDIR)
	}
	info, err := found.describe()
	if err != nil {
		return nil, err
	}
	return info, w.checkHoldsNone(found, info)
}

// checkHoldsNone returns a *ProtectedError if the entry is or contains a root or a denied
// directory. If that were moved, it would escape the session's roots or policy.
func (w *Workspace) checkHoldsNone(found arrival, info os.FileInfo) error {
	for _, root := range w.opened { // which may have been moved here since it was opened
		if root.entersBelow(found.at) || root.is(info) {
			return &ProtectedError{Path: found.asked.path, Dir: root.Dir}
		}
	}
	for _, d := range w.denied {
		if d.at.below(found.at) {
			return &ProtectedError{Path: found.asked.path, Dir: d.dir}
		}
	}
	return nil
}

// checkFree returns an error if something has the name where the path led.
func (found arrival) checkFree(op string) error {
	if found.exists() {
		return failed(op, found.asked.path, syscall.EEXIST)
	}
	return nil
}

func (found arrival) protected() error {
	return &ProtectedError{Path: found.asked.path, Dir: found.ref.root.Dir}
}

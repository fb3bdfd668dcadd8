package workspace

import (
	"errors"
	"io/fs"
)

// maxNewDirs is the most directories that one call makes.
const maxNewDirs = 256

// MkdirOptions configure [Workspace.Mkdir].
type MkdirOptions struct {
	// At, unless zero, is where path must still lead, as [Workspace.MkdirTarget] returned it. If it leads elsewhere,
	// the error is a *[MovedError].
	At Ref
}

// Mkdir makes a directory with the permissions perm, before the process's umask. The one above it must
// exist. A link at the end of path is not followed: what bears a name is there already, and the error is
// [fs.ErrExist]. It returns where the directory is.
func (w *Workspace) Mkdir(path string, perm fs.FileMode, o MkdirOptions) (Ref, error) {
	if err := w.begin(); err != nil {
		return Ref{}, err
	}
	defer w.end()
	a, err := parseNew("mkdir", path, perm)
	if err != nil {
		return Ref{}, err
	}
	return w.mkdir(a, perm, o.At)
}

// MkdirAll is Mkdir, makes the directories above too, and is content if path leads to a directory already. A
// link on the way is followed as far as it may be. It makes 256 directories at most; more is a
// *[LimitError]. If it fails in the middle, what it made stays.
func (w *Workspace) MkdirAll(path string, perm fs.FileMode) (Ref, error) {
	if err := w.begin(); err != nil {
		return Ref{}, err
	}
	defer w.end()
	a, err := parseNew("mkdir", path, perm)
	if err != nil {
		return Ref{}, err
	}
	names := len(a.at.names)
	there := names
	ref, err := w.existingDir(a.prefix(there))
	for ; errors.Is(err, fs.ErrNotExist) && there > 0; ref, err = w.existingDir(a.prefix(there)) {
		if there--; names-there > maxNewDirs {
			return Ref{}, &LimitError{Path: path, What: "directories to make", Limit: maxNewDirs}
		}
	}
	for ; err == nil && there < names; there++ {
		ref, err = w.makeDir(a.prefix(there+1), perm)
	}
	if err != nil {
		return Ref{}, err
	}
	return ref, nil
}

// makeDir makes a directory that was missing a moment ago.
func (w *Workspace) makeDir(a asked, perm fs.FileMode) (Ref, error) {
	ref, err := w.existingDir(a) // "new/.." is there as soon as new is
	if !errors.Is(err, fs.ErrNotExist) {
		return ref, err
	}
	if ref, err = w.mkdir(a, perm, Ref{}); errors.Is(err, fs.ErrExist) {
		if there, thereErr := w.existingDir(a); thereErr == nil {
			return there, nil // somebody else made it
		}
	}
	return ref, err
}

func (w *Workspace) mkdir(a asked, perm fs.FileMode, at Ref) (ref Ref, err error) {
	err = w.atSlot(a, func(s slot) error {
		if err := s.free("mkdir"); err != nil {
			return err
		}
		if err := expect(a.path, at, w.ref(s.root, s.at)); err != nil {
			return err
		}
		if err := s.dir.Mkdir(s.name, perm); err != nil {
			return failed("mkdir", a.path, err)
		}
		ref = w.ref(s.root, s.at)
		return nil
	})
	return ref, err
}

// existingDir is where the directory is that a path leads to.
func (w *Workspace) existingDir(a asked) (ref Ref, err error) {
	err = w.walk(a, followLast, func(end arrival) error {
		ref = w.ref(end.root, end.at)
		return nil
	})
	return ref, err
}

// prefix is the path to the directory that the first n names lead to.
func (a asked) prefix(n int) asked {
	return asked{path: a.path, at: location{a.at.top, a.at.names[:n:n]}, dir: true}
}

// parseNew is parse for something that is to get the permissions perm.
func parseNew(op, path string, perm fs.FileMode) (asked, error) {
	if perm&^fs.ModePerm != 0 {
		return asked{}, failed(op, path, errSpecialMode)
	}
	return parse(path)
}

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// slot is a name in a directory that is held open: where something is to be made, removed or moved. A link that
// bears the name is what is meant, not what it leads to. All that is done there is done by the directory's
// handle and the name, so that nothing that happens to the path leads it elsewhere.
type slot struct {
	asked asked
	dir   *handle
	name  string      // "" for a root, which is in no directory
	info  os.FileInfo // of what bears the name, nil if nothing does
	at    location
	root  int
}

// atSlot calls use with the slot that a path names, and does both again if something changed under their feet.
func (w *Workspace) atSlot(a asked, use func(slot) error) error {
	err := retry(func() error { return w.atSlotOnce(a, use) })
	if err == errChanging {
		return failed("open", a.path, err)
	}
	return err
}

func (w *Workspace) atSlotOnce(a asked, use func(slot) error) error {
	there := a
	there.dir = false // "l/" is about the name l as well
	found := false
	err := w.walkOnce(there, keepLast, func(end arrival) error {
		found = true
		return use(slot{a, end.dir, end.name, end.info, end.at, end.root})
	})
	if found || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return w.atFreeSlot(a, err, use)
}

// atFreeSlot is atSlotOnce for a path that leads to nothing, as missing says: its directory must be there.
func (w *Workspace) atFreeSlot(a asked, missing error, use func(slot) error) error {
	n := len(a.at.names) - 1
	if n < 0 || a.at.names[n] == ".." {
		return missing
	}
	name := a.at.names[n]
	parent := asked{path: a.path, at: location{a.at.top, a.at.names[:n:n]}, dir: true}
	return w.walkOnce(parent, followLast, func(end arrival) error {
		dir := end.dir
		if end.name != "" {
			var err error
			if dir, err = stepInto(end.dir, end.name, end.info); err != nil {
				return failed("open", a.path, err)
			}
			defer dir.Close()
		}
		s := slot{asked: a, dir: dir, name: name, at: end.at.child(name), root: end.root}
		if err := w.allowed(a.path, s.at); err != nil {
			return err
		}
		switch _, err := dir.Lstat(name); {
		case err == nil:
			return failed("open", a.path, errChanging)
		case !errors.Is(err, fs.ErrNotExist):
			return failed("open", a.path, err)
		}
		return use(s)
	})
}

// take fails unless the slot bears something that may be taken away from there, by op.
func (w *Workspace) take(op string, s slot) error {
	switch {
	case s.name == "":
		return &ProtectedError{Path: s.asked.path, Dir: w.opened[s.root].Dir}
	case s.info == nil:
		return failed(op, s.asked.path, syscall.ENOENT)
	case s.asked.dir && !s.info.IsDir():
		return failed(op, s.asked.path, syscall.ENOTDIR)
	default:
		return w.guard(s.asked.path, s.at, s.info)
	}
}

// guard fails if what is at a real location is a root or a denied directory, or holds one: moved, it would
// no longer be what was granted, or refused.
func (w *Workspace) guard(path string, at location, info os.FileInfo) error {
	for _, d := range w.doors {
		if d.at.below(at) {
			return &ProtectedError{Path: path, Dir: w.opened[d.root].Dir}
		}
	}
	for _, d := range w.denied {
		if d.at.below(at) {
			return &ProtectedError{Path: path, Dir: d.dir}
		}
	}
	if info == nil || !info.IsDir() {
		return nil
	}
	// A root that somebody moved is where it was not when it was opened.
	for i, h := range w.handles {
		if root, err := h.Lstat("."); err == nil && os.SameFile(root, info) {
			return &ProtectedError{Path: path, Dir: w.opened[i].Dir}
		}
	}
	return nil
}

// expect returns a *MovedError if a path leads elsewhere than was said. The zero Ref expects nothing.
func expect(path string, was, now Ref) error {
	if (was != Ref{}) && was != now {
		return &MovedError{Path: path, Was: was, Now: now}
	}
	return nil
}

// settle makes what was done to the names in a directory survive a loss of power, where the system has a
// way to. It is done in any case, so a failure here is nobody's.
func settle(dir *handle) {
	if d, err := dir.Open("."); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

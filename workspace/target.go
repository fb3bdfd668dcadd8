package workspace

import (
	"io/fs"
	"syscall"
)

// MkdirTarget returns where [Workspace.Mkdir] would make a directory, and fails where Mkdir would. It makes nothing.
func (w *Workspace) MkdirTarget(path string) (Ref, error) {
	return w.target(path, func(s slot) error { return s.free("mkdir") })
}

// RemoveTarget describes what [Workspace.Remove] would remove: a link itself, not what it points to. It fails where Remove would,
// except that it does not look into a directory. It removes nothing.
func (w *Workspace) RemoveTarget(path string) (Info, error) {
	var info fs.FileInfo
	ref, err := w.target(path, func(s slot) error {
		info = s.info
		return w.take("remove", s)
	})
	if err != nil {
		return Info{}, err
	}
	return Info{FileInfo: info, ref: ref, name: info.Name()}, nil
}

// RenameTarget describes what [Workspace.Rename] with CreateOnly would move, and returns where to. It fails where Rename
// would. It moves nothing.
func (w *Workspace) RenameTarget(from, to string) (Info, Ref, error) {
	info, err := w.RemoveTarget(from)
	if err != nil {
		return Info{}, Ref{}, err
	}
	ref, err := w.target(to, func(s slot) error { return s.free("rename") })
	return info, ref, err
}

// target returns where the entry that path names is, or would be, if check allows it.
func (w *Workspace) target(path string, check func(slot) error) (ref Ref, err error) {
	if err := w.begin(); err != nil {
		return Ref{}, err
	}
	defer w.end()
	a, err := parse(path)
	if err != nil {
		return Ref{}, err
	}
	err = w.atSlot(a, func(s slot) error {
		ref = w.ref(s.root, s.at)
		return check(s)
	})
	if err != nil {
		return Ref{}, err
	}
	return ref, nil
}

// free fails unless nothing has the slot's name.
func (s slot) free(op string) error {
	if s.name == "" || s.info != nil {
		return failed(op, s.asked.path, syscall.EEXIST)
	}
	return nil
}

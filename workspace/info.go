package workspace

import (
	"io/fs"
)

// Info describes a file or directory, and says where it is.
type Info struct {
	fs.FileInfo
	ref Ref
	// name is the last name of the path that was asked for, as for os.Stat.
	name string
}

// Name is the last name of the path that was asked for.
func (i Info) Name() string { return i.name }

// Ref is where it was when it was looked at.
func (i Info) Ref() Ref { return i.ref }

// Stat describes what is at path, without opening it: special files too. A link at the end is followed.
func (w *Workspace) Stat(path string) (Info, error) { return w.look(path, followLast) }

// Lstat is [Workspace.Stat], but describes a link at the end itself, wherever it points.
func (w *Workspace) Lstat(path string) (Info, error) { return w.look(path, keepLast) }

func (w *Workspace) look(path string, last lastLink) (Info, error) {
	if err := w.begin(); err != nil {
		return Info{}, err
	}
	defer w.end()
	a, err := parse(path)
	if err != nil {
		return Info{}, err
	}
	var (
		info fs.FileInfo
		ref  Ref
	)
	err = w.walk(a, last, func(end arrival) error {
		info, ref = end.info, w.ref(end.root, end.at)
		return nil
	})
	if err != nil {
		return Info{}, err
	}
	return Info{info, ref, a.name(ref)}, nil
}

// name is the last name that was asked for, or the owner's where there is none.
func (a asked) name(ref Ref) string {
	if n := len(a.at.names); n > 0 {
		return a.at.names[n-1]
	}
	return base(ref.root.Dir)
}

// base is the last name of a directory, or all of it where it has none.
func base(dir Dir) string {
	at := locate(dir.path)
	if n := len(at.names); n > 0 {
		return at.names[n-1]
	}
	return dir.path
}

// Readlink is the target of the link at path, as it is written there.
func (w *Workspace) Readlink(path string) (target string, err error) {
	if err := w.begin(); err != nil {
		return "", err
	}
	defer w.end()
	a, err := parse(path)
	if err != nil {
		return "", err
	}
	err = w.walk(a, keepLast, func(end arrival) error {
		if end.name == "" {
			return failed("readlink", path, fs.ErrInvalid)
		}
		target, err = end.dir.Readlink(end.name)
		if err != nil {
			return failed("readlink", path, err)
		}
		return nil
	})
	return target, err
}

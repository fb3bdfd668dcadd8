package workspace

import (
	"errors"
	"io/fs"
	"os"
)

// errUndecided: the direct way cannot tell; walk.
var errUndecided = errors.New("not to be decided directly")

// direct tries the way that most paths take: one open through the root that the path names, which
// follows links within that root and no others. What was opened is asked where it is, so that
// links on the way do not hide its owner, nor that the policy refuses it.
// That the root knows no such file is an answer. Every other failure is left
// to the walk (errUndecided): a link to another root, too many links, a FIFO.
func (w *Workspace) direct(a asked, flags int) (*os.File, os.FileInfo, Ref, error) {
	root, rel, ok := w.route(a)
	if !ok {
		return nil, nil, Ref{}, errUndecided
	}
	f, err := w.handles[root].OpenFile(rel, flags, 0)
	if err != nil {
		return nil, nil, Ref{}, w.undecided(a, err)
	}
	info, err := f.Stat()
	if err == nil {
		var ref Ref
		if ref, err = w.whereabouts(a, f, root); err == nil {
			return f, info, ref, nil
		}
	}
	_ = f.Close()
	return nil, nil, Ref{}, err
}

// directDir is direct for a directory.
func (w *Workspace) directDir(a asked) (*os.Root, Ref, error) {
	root, rel, ok := w.route(a)
	if !ok {
		return nil, Ref{}, errUndecided
	}
	dir, err := w.handles[root].OpenRoot(rel + "/.")
	if err != nil {
		return nil, Ref{}, w.undecided(a, err)
	}
	self, err := dir.Open(".")
	if err == nil {
		defer self.Close()
		var ref Ref
		if ref, err = w.whereabouts(a, self, root); err == nil {
			return dir, ref, nil
		}
	}
	_ = dir.Close()
	return nil, Ref{}, err
}

// route is the root that the path names, and the way from there.
func (w *Workspace) route(a asked) (root int, rel string, ok bool) {
	at := a.at
	if at.top == "" {
		at = w.real[0].child(at.names...)
	}
	root, taken, ok := w.enter(at)
	if !ok {
		return 0, "", false
	}
	return root, slashed(at.names[taken:]), true
}

func (w *Workspace) undecided(a asked, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return failed("open", a.path, err)
	}
	return errUndecided
}

// whereabouts asks the system where f is. It must be in the root that it was opened through, and in no
// root inside that one, which paths enter by its own handle.
func (w *Workspace) whereabouts(a asked, f *os.File, root int) (Ref, error) {
	path, err := realPath(f)
	if err != nil {
		return Ref{}, errUndecided
	}
	at := locate(path)
	if owner, ok := w.owner(at); !ok || owner != root {
		return Ref{}, errUndecided
	}
	if err := w.allowed(a.path, at); err != nil {
		return Ref{}, err
	}
	return w.ref(root, at), nil
}

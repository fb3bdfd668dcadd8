package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxDepth is the most directories inside one another that are removed or copied: each is held open.
const maxDepth = 1000

// RemoveOptions configure [Workspace.Remove] and [Workspace.RemoveAll].
type RemoveOptions struct {
	// At, unless zero, is where path must lead still, as [Workspace.Lstat] said (C11). If it leads
	// elsewhere the error is a *[MovedError].
	At Ref
}

// Remove removes the file or empty directory at path. A link is removed itself, wherever it points; "l/" can only
// mean a directory and is refused for one. What is special (C6) loses its name, and is not opened.
//
// A root, a denied directory, and whatever holds one stays: a *[ProtectedError].
func (w *Workspace) Remove(path string, o RemoveOptions) error {
	return w.remove(path, o, func(s slot) error {
		if err := s.dir.Remove(s.name); err != nil {
			return failed("remove", path, err)
		}
		return nil
	})
}

// RemoveAll removes what is at path, as Remove does, and of a directory all that is in it; links in
// it are not followed. It is content if there is nothing, and goes on after what it cannot remove, and
// says what was the first. The error may be the context's too, or a *[LimitError] for more than 1,000
// directories inside one another. What was removed by then stays so.
func (w *Workspace) RemoveAll(ctx context.Context, path string, o RemoveOptions) error {
	err := w.remove(path, o, func(s slot) error {
		r := &remover{ctx: ctx, w: w}
		r.entry(s.dir, s.name, s.at, s.info, 0)
		return r.failure
	})
	if errors.Is(err, fs.ErrNotExist) && (o.At == Ref{}) {
		return nil
	}
	return err
}

func (w *Workspace) remove(path string, o RemoveOptions, use func(slot) error) error {
	if err := w.begin(); err != nil {
		return err
	}
	defer w.end()
	a, err := parse(path)
	if err != nil {
		return err
	}
	return w.atSlot(a, func(s slot) error {
		if err := w.take("remove", s); err != nil {
			return err
		}
		if err := expect(path, o.At, w.ref(s.root, s.at)); err != nil {
			return err
		}
		return use(s)
	})
}

// remover removes trees, from handle to handle.
type remover struct {
	ctx     context.Context
	w       *Workspace
	failure error // the first
	stopped bool
}

// entry removes name in dir, which is at a real location and was seen as info.
func (r *remover) entry(dir *handle, name string, at location, info os.FileInfo, depth int) {
	if !info.IsDir() {
		r.unlink(dir, name, at)
		return
	}
	if err := r.w.guard(at.String(), at, info); err != nil {
		r.stop(err)
		return
	}
	if depth == maxDepth {
		r.stop(&LimitError{Path: at.String(), What: "directories inside one another", Limit: maxDepth})
		return
	}
	child, err := stepInto(dir, name, info)
	if err != nil {
		r.failed(at, err)
		return
	}
	r.empty(child, at, depth+1)
	_ = child.Close()
	if !r.stopped {
		r.unlink(dir, name, at)
	}
}

// empty removes what is in dir.
func (r *remover) empty(dir *handle, at location, depth int) {
	names, err := namesIn(dir)
	if err != nil {
		r.failed(at, err)
		return
	}
	for _, name := range names {
		if r.ctx.Err() != nil {
			r.stop(context.Cause(r.ctx))
		}
		if r.stopped {
			return
		}
		info, err := dir.Lstat(name)
		if err != nil {
			r.failed(at.child(name), err)
			continue
		}
		r.entry(dir, name, at.child(name), info, depth)
	}
}

func (r *remover) unlink(dir *handle, name string, at location) {
	if err := dir.Remove(name); err != nil {
		r.failed(at, err)
	}
}

// failed notes err about what is at a real location. That it is gone is what was wanted.
func (r *remover) failed(at location, err error) {
	if r.failure == nil && !errors.Is(err, fs.ErrNotExist) {
		r.failure = failed("remove", at.String(), err)
	}
}

func (r *remover) stop(err error) {
	r.stopped = true
	r.failure = err
}

// namesIn lists a directory.
func namesIn(dir *handle) ([]string, error) {
	list, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer list.Close()
	names, err := list.Readdirnames(-1)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ENOENT) { // it was removed
		err = nil
	}
	return names, err
}

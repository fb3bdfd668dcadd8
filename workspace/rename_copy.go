package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hiddenName is a name that is nobody's: neither of a file that is there nor of a trap.
func hiddenName() string { return ".acp-agent-" + rand.Text() }

// copy moves what cannot be renamed. Until the copy has its name, whatever fails is undone.
func (r *renaming) copy(ctx context.Context) error {
	if err := r.vacant(); err != nil {
		return err
	}
	copied := r.to
	copied.name, copied.info = hiddenName(), nil
	c := &copier{ctx: ctx, w: r.w, o: r.o, seen: make(map[string]os.FileInfo)}
	err := c.entry(r.from.dir, r.from.name, r.from.at, r.from.info, copied.dir, copied.name, 0)
	if err == nil {
		err = r.exchange(c, copied)
	}
	if err == nil {
		return r.clear()
	}
	_ = r.w.discard(copied.dir, copied.name, copied.at)
	return r.undone(ctx, err)
}

// vacant fails early if what is to be replaced is a directory that is not empty.
func (r *renaming) vacant() error {
	if r.to.info == nil || !r.to.info.IsDir() {
		return nil
	}
	dir, err := stepInto(r.to.dir, r.to.name, r.to.info)
	if err != nil {
		return r.failed(err)
	}
	defer dir.Close()
	names, err := namesIn(dir)
	if err == nil && len(names) > 0 {
		err = syscall.ENOTEMPTY
	}
	if err != nil {
		return r.failed(err)
	}
	return nil
}

// exchange takes the old thing out of the way and gives the copy its new name. From then on the old thing
// bears a hidden name, which the slot it came from is changed to.
func (r *renaming) exchange(c *copier, copied slot) error {
	aside := hiddenName()
	if err := r.from.dir.Rename(r.from.name, aside); err != nil {
		return err
	}
	err := c.verify(r.from.dir, aside, r.from.at)
	if err == nil {
		err = r.by(r.w, copied, r.to, r.o.Create)
	}
	if err != nil {
		return r.putBack(aside, err)
	}
	r.from.name = aside
	settle(r.to.dir)
	return nil
}

// putBack gives the old thing its name back, and returns why. It takes the name from nothing that has come
// meanwhile.
func (r *renaming) putBack(aside string, why error) error {
	err := r.from.dir.moveNew(aside, r.from.dir, r.from.name)
	if errors.Is(err, errors.ErrUnsupported) {
		err = r.from.dir.Rename(aside, r.from.name)
	}
	if err != nil {
		at := r.w.ref(r.from.root, r.from.at.parent().child(aside))
		return &StrandedError{Path: r.from.asked.path, At: at, Err: cause(why)}
	}
	return why
}

// clear removes the old thing.
func (r *renaming) clear() error {
	err := r.w.discard(r.from.dir, r.from.name, r.from.at)
	settle(r.from.dir)
	if err != nil {
		hidden := r.w.ref(r.from.root, r.from.at.parent().child(r.from.name))
		return &LeftoverError{Path: r.from.asked.path, At: hidden, Err: cause(err)}
	}
	return nil
}

// discard removes name in dir, with all that is in it, even if the operation's context has ended. In
// messages it is at a location.
func (w *Workspace) discard(dir *handle, name string, at location) error {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r := &remover{ctx: context.Background(), w: w}
	r.entry(dir, name, at, info, 0)
	return r.failure
}

// undone is err about the whole of the operation.
func (r *renaming) undone(ctx context.Context, err error) error {
	var (
		stranded  *StrandedError
		limit     *LimitError
		special   *SpecialFileError
		protected *ProtectedError
	)
	switch {
	case errors.As(err, &stranded):
		return stranded
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errChanging):
		return &ChangedError{Path: r.from.asked.path} // it is not copied once more
	case errors.As(err, &limit), errors.As(err, &special), errors.As(err, &protected):
		return err
	default:
		return r.failed(err)
	}
}

package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// writtenAtOnce is how many bytes are written between two looks at the context.
const writtenAtOnce = 1 << 20

// replacement is a file that is to take the place of name in dir. All that it does there it does by
// the directory's handle and a name in it, so that nothing that happens to the path leads it elsewhere.
type replacement struct {
	asked   asked
	dir     *handle
	name    string
	old     os.FileInfo // of the file that bears the name, nil if there is none
	version Version     // that it must have, or zero
}

// put fails with errChanging if the name is no longer what was seen.
func (r replacement) put(ctx context.Context, data []byte) error {
	err := r.replace(ctx, data)
	changed := (*ChangedError)(nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &changed):
		return changed
	default:
		return failed("write", r.asked.path, err)
	}
}

func (r replacement) replace(ctx context.Context, data []byte) error {
	temp := hiddenName()
	if err := r.fill(ctx, temp, data); err != nil {
		return err
	}
	err := r.check()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = r.take(temp)
	}
	_ = r.dir.Remove(temp) // where it was renamed there is none
	if err == nil {
		settle(r.dir)
	}
	return err
}

// fill makes the file temp, which must not exist, and leaves nothing if that fails.
func (r replacement) fill(ctx context.Context, temp string, data []byte) error {
	mode := fs.FileMode(0o666) // what the process's umask leaves of it
	if r.old != nil {
		mode = 0o600 // until it gets the old file's permissions
	}
	f, err := r.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = writeAll(ctx, f, data)
	if err == nil && r.old != nil {
		err = inherit(f, r.old)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = r.dir.Remove(temp)
	}
	return err
}

func writeAll(ctx context.Context, f *os.File, data []byte) error {
	for len(data) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := f.Write(data[:min(len(data), writtenAtOnce)])
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// inherit gives f what the old file has. Where it cannot have the group, another group gets no more than
// everybody.
func inherit(f *os.File, old os.FileInfo) error {
	perm := old.Mode().Perm()
	if !keepOwner(f, old) {
		perm = perm&^0o070 | perm&0o007<<3
	}
	return f.Chmod(perm)
}

// check fails unless the name is as it was seen and its file has the version.
func (r replacement) check() error {
	now, err := r.dir.Lstat(r.name)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return err
	case missing != (r.old == nil), !missing && !os.SameFile(now, r.old):
		return errChanging
	case r.version.IsZero():
		return nil
	}
	f, info, err := stepOnto(r.dir, r.name, r.old)
	if err != nil {
		return err
	}
	defer f.Close()
	same, err := r.version.matches(f, info.Size())
	if err == nil && !same {
		err = &ChangedError{Path: r.asked.path}
	}
	return err
}

// take gives temp the name.
func (r replacement) take(temp string) error {
	if r.old == nil {
		// Unlike a rename, neither of these takes the name from a file that has come meanwhile.
		err := r.dir.moveNew(temp, r.dir, r.name)
		if errors.Is(err, errors.ErrUnsupported) {
			err = r.dir.Link(temp, r.name)
		}
		if errors.Is(err, fs.ErrExist) {
			return errChanging
		}
		if err == nil {
			return nil
		}
		// Not every file system has hard links.
	}
	return r.dir.Rename(temp, r.name)
}

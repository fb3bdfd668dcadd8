package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// copier copies trees, from handle to handle. Links are copied as they are.
type copier struct {
	ctx     context.Context
	w       *Workspace
	o       RenameOptions
	entries int
	bytes   int64
	seen    map[string]os.FileInfo // what was copied, by its real path
}

// entry copies name in src, which is at a real location and was seen as info, to newname in dst, which must not exist.
func (c *copier) entry(src *handle, name string, at location, info os.FileInfo, dst *handle, newname string, depth int) error {
	if c.entries++; c.entries > c.o.MaxEntries {
		return &LimitError{Path: at.String(), What: "files and directories to copy", Limit: int64(c.o.MaxEntries)}
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	c.seen[at.String()] = info
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return c.file(src, name, at, info, dst, newname)
	case mode.IsDir():
		return c.dir(src, name, at, info, dst, newname, depth)
	case mode&fs.ModeSymlink != 0:
		target, err := src.Readlink(name)
		if err != nil {
			return recheck(src, name, info, err)
		}
		return dst.symlink(target, newname)
	default:
		return unfit(at.String(), mode)
	}
}

func (c *copier) file(src *handle, name string, at location, info os.FileInfo, dst *handle, newname string) (err error) {
	from, now, err := stepOnto(src, name, info)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := dst.OpenFile(newname, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := c.content(to, from, at); err != nil {
		return err
	}
	if err := inherit(to, now); err != nil {
		return err
	}
	if err := dst.setTimes(to, newname, time.Time{}, now.ModTime()); err != nil {
		return err
	}
	return to.Sync()
}

func (c *copier) content(to io.Writer, from io.Reader, at location) error {
	for {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		n, err := io.CopyN(to, from, min(writtenAtOnce, c.o.MaxBytes-c.bytes)+1)
		if c.bytes += n; c.bytes > c.o.MaxBytes {
			return &LimitError{Path: at.String(), What: "bytes to copy", Limit: c.o.MaxBytes}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *copier) dir(src *handle, name string, at location, info os.FileInfo, dst *handle, newname string, depth int) error {
	if depth == maxDepth {
		return &LimitError{Path: at.String(), What: "directories inside one another", Limit: maxDepth}
	}
	if err := c.w.guard(at.String(), at, info); err != nil {
		return err
	}
	from, err := stepInto(src, name, info)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := dst.Mkdir(newname, 0o700); err != nil {
		return err
	}
	to, err := dst.into(newname)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := c.children(from, at, to, depth+1); err != nil {
		return err
	}
	self, err := to.Open(".")
	if err != nil {
		return err
	}
	err = inherit(self, info)
	if err == nil {
		err = dst.setTimes(self, newname, time.Time{}, info.ModTime())
	}
	_ = self.Sync() // not every file system can
	return errors.Join(err, self.Close())
}

func (c *copier) children(from *handle, at location, to *handle, depth int) error {
	names, err := namesIn(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := from.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return errChanging
		}
		if err == nil {
			err = c.entry(from, name, at.child(name), info, to, name, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verify fails with errChanging unless name in dir, which was at a real location when it was copied, is what was
// copied, with all that is in it.
func (c *copier) verify(dir *handle, name string, at location) error {
	found, err := c.same(dir, name, at)
	if err == nil && found != len(c.seen) {
		err = errChanging
	}
	return err
}

// same counts what it compares.
func (c *copier) same(dir *handle, name string, at location) (found int, err error) {
	now, err := dir.Lstat(name)
	if err != nil {
		return 0, err
	}
	was := c.seen[at.String()]
	if was == nil || !os.SameFile(now, was) || written(now, was) {
		return 0, errChanging
	}
	if !now.IsDir() {
		return 1, nil
	}
	child, err := stepInto(dir, name, now)
	if err != nil {
		return 0, err
	}
	defer child.Close()
	names, err := namesIn(child)
	found = 1
	for _, name := range names {
		if err != nil {
			break
		}
		var more int
		more, err = c.same(child, name, at.child(name))
		found += more
	}
	return found, err
}

// written reports whether a file was written between two looks.
func written(now, was os.FileInfo) bool {
	return now.Mode().IsRegular() && (now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()))
}

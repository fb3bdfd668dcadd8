package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// InPlaceOptions configure [Workspace.Append] and [Workspace.Truncate].
type InPlaceOptions struct {
	// Create says whether the file must be there. Truncate makes none. Default CreateOrReplace: Append
	// makes a file that is missing.
	Create Create
	// At, unless zero, is where path must lead still, as [Workspace.WriteTarget] said (C11). If it leads elsewhere
	// the error is a *[MovedError].
	At Ref
	// HardLinks says what to do with a file that has more than one name. Default RefuseHardLinks.
	HardLinks HardLinks
	// MaxSize is the most bytes that are appended, or that a file grows to by Truncate. More is a
	// *[TooLargeError]. Default [DefaultMaxWrite].
	MaxSize int64
}

// Append writes data behind the end of the regular file at path, and waits until it is on the disk. It
// returns where the file is. Errors are those of [Workspace.OpenFile], *[MovedError], *[TooLargeError],
// and the context's. Unlike [Workspace.WriteFile] it may have written a part if it fails.
func (w *Workspace) Append(ctx context.Context, path string, data []byte, o InPlaceOptions) (Ref, error) {
	if err := (WriteOptions{MaxSize: o.MaxSize}).bound(path, len(data)); err != nil {
		return Ref{}, err
	}
	flag := os.O_WRONLY | os.O_APPEND
	switch o.Create {
	case CreateOrReplace:
		flag |= os.O_CREATE
	case CreateOnly:
		flag |= os.O_CREATE | os.O_EXCL
	}
	return w.change(path, flag, o, func(f *os.File) error {
		return writeAll(ctx, f, data)
	})
}

// Truncate gives the regular file at path a size, in bytes; what is added is zeros. It waits until that is on the
// disk, and returns where the file is. Errors are those of [Workspace.OpenFile], *[MovedError]
// and *[TooLargeError].
func (w *Workspace) Truncate(path string, size int64, o InPlaceOptions) (Ref, error) {
	if size < 0 {
		return Ref{}, failed("truncate", path, syscall.EINVAL)
	}
	return w.change(path, os.O_WRONLY, o, func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		setDefault(&o.MaxSize, DefaultMaxWrite)
		if size > info.Size() && size > o.MaxSize {
			return &TooLargeError{Path: path, Size: size, Limit: o.MaxSize}
		}
		return f.Truncate(size)
	})
}

// change opens the file at path, changes it and waits for the disk.
func (w *Workspace) change(path string, flag int, o InPlaceOptions, it func(*os.File) error) (Ref, error) {
	f, err := w.openFileAt(path, flag, OpenOptions{HardLinks: o.HardLinks}, o.At)
	if err != nil {
		return Ref{}, err
	}
	if err = it(f.file); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
			err = failed("write", path, err)
		}
		return Ref{}, err
	}
	return f.ref, nil
}

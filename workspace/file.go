package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
)

// File is a regular file, open for reading. It is safe for concurrent use, except Read and Seek. It
// stays readable after its Workspace was closed.
type File struct {
	file *os.File
	ref  Ref
}

// Open opens a regular file for reading. For a FIFO, socket or device the error is a
// *[SpecialFileError]; Open never waits for one or reads from it. A special file that replaces a
// regular file at that very moment may be opened and closed. The caller closes the file.
func (w *Workspace) Open(path string) (*File, error) {
	a, err := w.beginAt(path)
	if err != nil {
		return nil, err
	}
	defer w.finish()
	return w.openFile(a)
}

// Hash returns the SHA-256 of a regular file in hexadecimal, and its size in bytes. If the file has
// more than max bytes, size is greater than max and the sum is "".
func (w *Workspace) Hash(path string, max int64) (sum string, size int64, err error) {
	f, err := w.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	if info.Size() > max {
		return "", info.Size(), nil
	}
	hash := sha256.New()
	size, err = io.Copy(hash, io.LimitReader(f, max+1)) // it may have grown
	if err != nil || size > max {
		return "", size, err
	}
	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

func (w *Workspace) openFile(a parsedPath) (file *File, err error) {
	err = w.resolve(a, followLast, func(found arrival) error {
		f, err := openRegular(found.dir, found.name, found.stat, a.path)
		if err != nil {
			return err
		}
		file, err = w.checked(&File{f, found.ref}, a.path)
		return err
	})
	return file, err
}

// Ref returns where the file was when it was opened.
func (f *File) Ref() Ref { return f.ref }

// Read implements [io.Reader].
func (f *File) Read(p []byte) (int, error) { return f.file.Read(p) }

// ReadAt implements [io.ReaderAt].
func (f *File) ReadAt(p []byte, offset int64) (int, error) { return f.file.ReadAt(p, offset) }

// Seek implements [io.Seeker].
func (f *File) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

// Stat describes the open file.
func (f *File) Stat() (fs.FileInfo, error) { return f.file.Stat() }

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Info describes a file or directory and where it is.
type Info struct {
	fs.FileInfo
	ref  Ref
	name string
}

// Name returns the last name of the requested path.
func (i Info) Name() string { return i.name }

// Ref returns where the file was.
func (i Info) Ref() Ref { return i.ref }

// Stat describes the file at path, of any type, without opening it. It follows a link at the end.
func (w *Workspace) Stat(path string) (Info, error) { return w.stat(path, followLast) }

// Lstat is like [Workspace.Stat], but describes a link at the end itself, wherever it points.
func (w *Workspace) Lstat(path string) (Info, error) { return w.stat(path, keepLast) }

func (w *Workspace) stat(path string, want ending) (info Info, err error) {
	err = w.resolvePath(path, want, func(found arrival) error {
		now, err := found.describe()
		if err != nil {
			return err
		}
		info = Info{now, found.ref, found.asked.name(found.ref)}
		return nil
	})
	return info, err
}

// name returns the last name of the path, or of its root if it has none.
func (a parsedPath) name(ref Ref) string {
	if n := len(a.at.names); n > 0 {
		return a.at.names[n-1]
	}
	return base(ref.root.Dir)
}

// base returns the last name of a directory, or its path if it has none.
func base(dir Dir) string {
	at := locate(dir.path)
	if n := len(at.names); n > 0 {
		return at.names[n-1]
	}
	return dir.path
}

// Readlink returns the target of the link at path, unresolved.
func (w *Workspace) Readlink(path string) (target string, err error) {
	err = w.resolvePath(path, keepLast, func(found arrival) error {
		if found.name == "" {
			return failed("readlink", path, fs.ErrInvalid)
		}
		target, err = found.dir.Readlink(found.name)
		if err != nil {
			return failed("readlink", path, err)
		}
		return nil
	})
	return target, err
}

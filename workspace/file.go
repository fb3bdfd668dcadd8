package workspace

import (
	"io/fs"
	"os"
)

// File is a regular file, opened for reading. It is safe for concurrent use, but for Read and Seek.
// It stays readable after its Workspace was closed.
type File struct {
	file *os.File
	ref  Ref
}

// Open opens a regular file for reading. It never waits: FIFOs, sockets and
// devices are a *[SpecialFileError] (C6). The caller closes the file.
func (w *Workspace) Open(path string) (*File, error) {
	if err := w.begin(); err != nil {
		return nil, err
	}
	defer w.end()
	a, err := parse(path)
	if err != nil {
		return nil, err
	}
	return w.openFile(a)
}

func (w *Workspace) openFile(a asked) (file *File, err error) {
	err = w.walk(a, toOpen, func(end arrival) error {
		if end.name == "" {
			return unfit(a.path, fs.ModeDir)
		}
		f, err := openSeen(end.dir, end.name, end.seen, a.path)
		if err != nil {
			return err
		}
		file = &File{f, w.ref(end.root, end.at)}
		return nil
	})
	return file, err
}

// Ref is where the file was when it was opened.
func (f *File) Ref() Ref { return f.ref }

// Read reads on from where the last Read ended, as [io.Reader] says.
func (f *File) Read(p []byte) (int, error) { return f.file.Read(p) }

// ReadAt reads at an offset, as [io.ReaderAt] says.
func (f *File) ReadAt(p []byte, offset int64) (int, error) { return f.file.ReadAt(p, offset) }

// Seek moves the place of the next Read, as [io.Seeker] says.
func (f *File) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

// Stat describes the open file.
func (f *File) Stat() (fs.FileInfo, error) { return f.file.Stat() }

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

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

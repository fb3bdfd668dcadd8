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

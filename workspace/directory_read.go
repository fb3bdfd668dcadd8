package workspace

import (
	"errors"
	"io"
	"os"
	"strings"
)

// Stat describes the directory itself, as it was when it was opened, or is now.
func (d *Directory) Stat() (Info, error) {
	info := d.opened
	if info == nil {
		var err error
		if info, err = d.handle.describe("."); err != nil {
			return Info{}, failed("stat", d.ref.Path(), err)
		}
	}
	return Info{info, d.ref, lastName(d.ref)}, nil
}

// ReadFile reads what the entry e is, a regular file or a link to one, as [Directory.Open] opens it, in as few calls of
// the system as there can be. The content is in buf, or in a larger buffer if it does not fit; it is nil if the
// file has more than limit bytes, which the Info tells. A regular file must have been listed, or
// described, as such: another one is looked at before it is opened, so that a special file is refused (C6).
func (d *Directory) ReadFile(e Entry, buf []byte, limit int64) ([]byte, Info, error) {
	if err := d.w.begin(); err != nil {
		return nil, Info{}, err
	}
	defer d.w.end()
	if err := checkName(e.Name); err != nil {
		return nil, Info{}, err
	}
	if e.Type.IsRegular() {
		if err := d.allowed(e.Name); err != nil {
			return nil, Info{}, err
		}
		content, info, err := d.handle.readRegular(e.Name, buf, limit)
		if err == nil {
			return content, Info{info, d.ref.child(e.Name), e.Name}, nil
		}
	}
	f, err := d.openFile(e.Name)
	if err != nil {
		return nil, Info{}, err
	}
	defer f.Close()
	content, info, err := readFile(f.file, buf, limit)
	if err != nil {
		return nil, Info{}, d.failed("read", e.Name, err)
	}
	return content, Info{info, f.ref, e.Name}, nil
}

// checkName is parseName, for most names by a look at their characters.
func checkName(name string) error {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '.' && i < len(name)-1: // neither "." nor ".."
		default:
			return parseName(name)
		}
	}
	if name == "" {
		return parseName(name)
	}
	return nil
}

// readFile reads an open file into buf or a larger buffer, unless it has more than limit bytes.
func readFile(f *os.File, buf []byte, limit int64) ([]byte, os.FileInfo, error) {
	info, err := f.Stat()
	if err != nil || info.Size() > limit {
		return nil, info, err
	}
	content, err := readUpTo(f, info.Size(), buf, limit)
	return content, info, err
}

// readUpTo reads a file that had size bytes a moment ago, up to limit. If that many are read at once, that is all.
func readUpTo(f io.Reader, size int64, buf []byte, limit int64) ([]byte, error) {
	if int64(cap(buf)) <= size {
		buf = make([]byte, size+4096)
	}
	buf = buf[:cap(buf)]
	n, err := f.Read(buf[:min(int64(len(buf)), max(limit, 1))])
	if int64(n) == size || errors.Is(err, io.EOF) {
		return buf[:n], nil
	}
	if err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(f, limit-int64(n)))
	return append(buf[:n:n], rest...), err
}

// lastName is the last name of where something is.
func lastName(ref Ref) string {
	if ref.rel == "." {
		return base(ref.root.Dir)
	}
	return ref.rel[strings.LastIndexByte(ref.rel, '/')+1:]
}

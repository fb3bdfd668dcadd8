// Package namedfile reads files that the user names on the command line or in a setting. It reads
// only regular files, and explains errors in plain language.
package namedfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/text"
)

// ErrNotRegular is the error for pipes and devices, which might never end.
var ErrNotRegular = errors.New("it is not a regular file")

// Read returns the content of a regular file.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Open opens a file, or a pipe that the shell made, for reading.
func Open(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil || !IsDir(path) {
		return file, err
	}
	return nil, errors.Join(&fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR},
		file.Close())
}

// ExpandHome returns path with the home directory in place of a leading "~", which a shell does not
// expand behind "=" or in quotes, and an editor never.
func ExpandHome(path string) (string, error) {
	rest, inHome := strings.CutPrefix(filepath.ToSlash(path)+"/", "~/")
	if !inHome {
		return path, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, rest), err
}

// ReadBounded is like Read for a file of at most max bytes.
func ReadBounded(path string, max int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > max {
		return nil, fmt.Errorf("%s has more than %s", path, text.Size(max))
	}
	return Read(path)
}

// ExplainNew is [Explain] for a file that is created if it does not exist.
func ExplainNew(err error) error {
	failed, ok := errors.AsType[*fs.PathError](err)
	if ok && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s for the file %s: create it, or give another file",
			filepath.Dir(failed.Path), filepath.Base(failed.Path))
	}
	return Explain(err)
}

// Explain returns the error of opening a file in plain language. It returns other errors unchanged.
func Explain(err error) error {
	failed, ok := errors.AsType[*fs.PathError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s: check its path", failed.Path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("you have no permission to open %s: give another file, or change its "+
			"permissions", failed.Path)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s is a folder: give a file", failed.Path)
	}
	return err
}

// IsDir reports whether path leads to a directory.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Same reports whether two paths lead to the same file.
func Same(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

package workspace

import (
	"errors"
	"os"
	"path/filepath"
)

var errNoRealPath = errors.New("the system does not tell where it is")

// realPathOf is the real path of the directory that root holds, which was opened by the
// path name. Where the system cannot tell a handle's path, the path that name resolves
// to is taken if it leads to the same directory.
func realPathOf(root *handle, name string) (string, error) {
	self, err := root.Open(".")
	if err != nil {
		return "", err
	}
	defer self.Close()
	held, err := self.Stat()
	if err != nil {
		return "", err
	}
	leadsThere := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && os.SameFile(info, held)
	}
	if path, err := realPath(self); err == nil && leadsThere(path) {
		return path, nil
	}
	if path, err := filepath.EvalSymlinks(name); err == nil && leadsThere(path) {
		return path, nil
	}
	return "", errNoRealPath
}

package workspace

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// realPath is where an open file or directory is now, as the kernel knows it. It fails for one that
// was deleted, or cannot be named from here.
func realPath(f *os.File) (string, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	var path string
	controlErr := conn.Control(func(fd uintptr) {
		path, err = pathOf(int(fd))
	})
	if err := errors.Join(controlErr, err); err != nil {
		return "", err
	}
	// A file can be named "x (deleted)" too; whoever asks has another way for both.
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, " (deleted)") {
		return "", errNoRealPath
	}
	return path, nil
}

// pathOf is where an open file is, as the kernel says it.
func pathOf(fd int) (string, error) { return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)) }

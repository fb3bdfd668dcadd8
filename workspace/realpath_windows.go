package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// realPath is where an open file or directory is now, as the system knows it.
func realPath(f *os.File) (string, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	var path string
	controlErr := conn.Control(func(fd uintptr) {
		path, err = finalPath(windows.Handle(fd))
	})
	if err := errors.Join(controlErr, err); err != nil {
		return "", err
	}
	return plain(path), nil
}

func finalPath(handle windows.Handle) (string, error) {
	buf := make([]uint16, windows.MAX_PATH)
	for {
		n, err := windows.GetFinalPathNameByHandle(handle, &buf[0], uint32(len(buf)), 0)
		if err != nil {
			return "", err
		}
		if int(n) < len(buf) {
			return windows.UTF16ToString(buf[:n]), nil
		}
		buf = make([]uint16, n+1)
	}
}

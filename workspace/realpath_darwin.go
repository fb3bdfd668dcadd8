package workspace

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPath is PATH_MAX, the size that F_GETPATH asks for.
const maxPath = 1024

// realPath is where an open file or directory is now, as the kernel knows it.
func realPath(f *os.File) (string, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	var (
		path [maxPath]byte
		pin  runtime.Pinner
	)
	pin.Pin(&path)
	defer pin.Unpin()
	controlErr := conn.Control(func(fd uintptr) {
		_, err = unix.FcntlInt(fd, unix.F_GETPATH, int(uintptr(unsafe.Pointer(&path))))
	})
	if err := errors.Join(controlErr, err); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(path[:]), nil
}

package dirfd

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/windows"
)

const (
	// readFlags open for reading.
	readFlags = os.O_RDONLY
	// writeFlags open for writing without changing anything.
	writeFlags = os.O_WRONLY
	// linkTypes are the types of entries that lead elsewhere: symbolic links, and by the other bit
	// junctions and volume mount points, which are irregular files to Go. Other irregular files
	// cannot be read as links, and are refused.
	linkTypes = fs.ModeSymlink | fs.ModeIrregular
)

// mountOf returns the same mount for all files: on Windows a volume that is mounted below a
// directory counts as a link.
func mountOf(os.FileInfo) MountID { return 1 }

// MountPoints returns nil.
func MountPoints() []string { return nil }

// TryLock is unsupported: a file that is open and locked cannot be replaced on Windows.
func TryLock(*os.File) error { return errors.ErrUnsupported }

// Inherit does nothing: on Windows a new file has the access rights of its directory.
func Inherit(*os.File, *os.File) (Losses, error) { return 0, nil }

// WouldLose returns nothing.
func (d *Dir) WouldLose(os.FileInfo) (Losses, error) { return 0, nil }

// Links returns 1: on Windows a FileInfo does not contain the number of names.
func Links(os.FileInfo) uint64 { return 1 }

// realPath returns the path of an open directory as the system knows it, without the \\?\ that
// lifts the limit on its length.
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
	if share, ok := strings.CutPrefix(path, `\\?\UNC\`); ok {
		return `\\` + share, nil
	}
	return strings.TrimPrefix(path, `\\?\`), nil
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

// Trusted reports whether the owner of a file may decide about like. Owners are not compared here.
func Trusted(_, _ os.FileInfo) bool { return true }

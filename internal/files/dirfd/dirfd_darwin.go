package dirfd

import (
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxPath is PATH_MAX, the size that F_GETPATH needs.
	maxPath = 1024
	// noWait makes Getfsstat return what the kernel knows, without asking file systems that may
	// hang.
	noWait = 2
)

// mountOf returns the file system of a file. Here a directory cannot be mounted in a second place.
func mountOf(info os.FileInfo) MountID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return MountID(uint64(stat.Dev) + 1) // a device may be 0, which means unknown here
}

// realPath returns the path of an open directory as the kernel knows it.
func realPath(f *os.File) (string, error) {
	var (
		path [maxPath]byte
		pin  runtime.Pinner
	)
	pin.Pin(&path)
	defer pin.Unpin()
	err := onDescriptor(f, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_GETPATH, int(uintptr(unsafe.Pointer(&path))))
		return err
	})
	return unix.ByteSliceToString(path[:]), err
}

// MountPoints returns the paths where something is mounted, nil if the system does not tell.
func MountPoints() []string {
	n, err := unix.Getfsstat(nil, noWait)
	if err != nil {
		return nil
	}
	mounted := make([]unix.Statfs_t, n)
	if n, err = unix.Getfsstat(mounted, noWait); err != nil {
		return nil
	}
	var points []string
	for _, m := range mounted[:min(n, len(mounted))] {
		points = append(points, unix.ByteSliceToString(m.Mntonname[:]))
	}
	return points
}

// lockable reports whether TryLock may lock the file.
func lockable(int) bool { return true }

// copyAttributes gives f permissions. It copies no attributes here.
func copyAttributes(f, _ *os.File, _ Losses, perm fs.FileMode) (Losses, error) {
	return 0, setMode(f, perm)
}

//go:build unix && !linux

package workspace

import (
	"io/fs"
	"os"
	"syscall"
)

// linkTypes are the types of what leads elsewhere.
const linkTypes = fs.ModeSymlink

// mountOf is the file system that holds what info describes. Nothing here mounts a directory in
// a second place.
func mountOf(info os.FileInfo) mountID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return mountID(uint64(stat.Dev) + 1) // a device may be 0, which is none here
}

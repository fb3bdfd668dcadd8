package dirtest

import "golang.org/x/sys/unix"

// free returns the free bytes of the file system in memory at path, 0 if it is another one.
func free(path string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil || s.Type != unix.TMPFS_MAGIC {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}

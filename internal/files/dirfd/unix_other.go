//go:build unix && !linux

package dirfd

import (
	"io/fs"
	"os"
)

// lockable reports whether TryLock may lock the file.
func lockable(int) bool { return true }

// copyAttributes gives f permissions. It copies no attributes here.
func copyAttributes(f, _ *os.File, _ Losses, perm fs.FileMode) (Losses, error) {
	return 0, setMode(f, perm)
}

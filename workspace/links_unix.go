//go:build unix

package workspace

import (
	"errors"
	"os"
	"syscall"
)

// links is how many names an open file has.
func links(_ *os.File, info os.FileInfo) (uint64, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return uint64(stat.Nlink), nil
}

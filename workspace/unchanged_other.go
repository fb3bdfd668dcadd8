//go:build !linux

package workspace

import "os"

// unchanged is Unchanged.
func unchanged(before, now os.FileInfo) bool {
	return identical(before, now) && before.Mode() == now.Mode() && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

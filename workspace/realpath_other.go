//go:build !linux && !darwin && !windows

package workspace

import "os"

// realPath is where an open file or directory is now; this system does not tell.
func realPath(*os.File) (string, error) { return "", errNoRealPath }

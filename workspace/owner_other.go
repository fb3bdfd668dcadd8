//go:build !unix

package workspace

import "os"

// keepOwner does nothing: permissions here name no group.
func keepOwner(*os.File, os.FileInfo) bool { return true }

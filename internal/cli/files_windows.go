package cli

import (
	"io/fs"
)

// ownedByAnother returns false: on Windows files inherit the permissions of their folder.
func ownedByAnother(fs.FileInfo) bool { return false }

// writableByOthers is not known either.
func writableByOthers(fs.FileInfo) bool { return false }

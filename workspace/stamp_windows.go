package workspace

import "os"

// identical reports whether both are of one file.
func identical(before, now os.FileInfo) bool { return os.SameFile(before, now) }

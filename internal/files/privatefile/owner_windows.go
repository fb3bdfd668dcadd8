package privatefile

import "io/fs"

// isForeign returns false: directories of other users cannot be changed.
func isForeign(fs.FileInfo) bool { return false }

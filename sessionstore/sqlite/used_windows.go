package sqlite

// usedBy leaves it to Windows, which refuses to rename a file that somebody has open.
func usedBy(string) (pid int, used bool) { return 0, false }

//go:build !linux

package sqlite

// lockHolder returns "": it is known on Linux only.
func lockHolder(string) string { return "" }

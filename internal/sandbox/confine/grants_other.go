//go:build !linux

package confine

// identity returns what a directory keeps when it is renamed and no other directory gets, or "".
func identity(string) string { return "" }

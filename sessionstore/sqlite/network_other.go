//go:build !linux && !darwin && !windows

package sqlite

// onNetwork would report a file system that machines share; here it cannot be told.
func onNetwork(string) bool { return false }

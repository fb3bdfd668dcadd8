//go:build !linux && !darwin && !windows

package sqlite

// onNetwork returns false: this system offers no portable way to detect a network file system.
func onNetwork(string) bool { return false }

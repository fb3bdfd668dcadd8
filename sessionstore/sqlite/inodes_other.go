//go:build !linux && !darwin

package sqlite

func hasNoInodes(string) bool { return false }

//go:build !linux

package cli

// These are not used: the scripts that need them are skipped.
func acting()          {}
func withoutLandlock() {}

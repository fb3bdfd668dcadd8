//go:build !linux

package main

// These are not used: the scripts that need them are skipped.
func acting()          {}
func typing()          {}
func withoutLandlock() {}

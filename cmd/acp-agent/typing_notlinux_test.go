//go:build !linux

package main

// typing is not used: the scripts that need it are skipped.
func typing() {}

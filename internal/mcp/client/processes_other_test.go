//go:build !linux

package client_test

// runOwner is used on Linux only.
func runOwner() int { return 2 }

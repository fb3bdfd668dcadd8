//go:build !linux

package mcpclient_test

// runOwner is used on Linux only.
func runOwner() int { return 2 }

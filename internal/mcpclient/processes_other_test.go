//go:build !linux

package mcpclient_test

// playOwner is played on Linux alone.
func playOwner() int { return 2 }

//go:build !linux

package mcpservers_test

// playOwner is played on Linux alone.
func playOwner() int { return 2 }

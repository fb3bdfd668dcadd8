//go:build !linux && !darwin

package sandbox

import "runtime"

// available returns nil if processes can be restricted as p says, and otherwise an [ErrUnavailable]
// that explains why not.
func (p Policy) available() error {
	return unavailable("acp-agent has none for %s, only for Linux and macOS", runtime.GOOS)
}

// run calls start once with the launch of a process that is restricted by p from its first
// instruction, or returns an error.
func (p Policy) run(Launch, func(Launch) error) error { return p.available() }

func devices() []string { return nil }

func systemPaths() []string { return nil }

func mayAccess(string, bool) bool { return false }

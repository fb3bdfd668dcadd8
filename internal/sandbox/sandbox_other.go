//go:build !linux && !darwin

package sandbox

import "runtime"

// Run calls start if p does not restrict it.
func (p Policy) Run(start func() error) error {
	if p.Mode == Off {
		return start()
	}
	return unavailable("acp-agent has none for %s, only for Linux and macOS", runtime.GOOS)
}

// Wrap returns the command line that starts a program as p says, or nil if that is its own.
func (p Policy) Wrap(string, []string) []string { return nil }

func devices() []string { return nil }

func systemPaths() []string { return nil }

func mayAccess(string, bool) bool { return false }

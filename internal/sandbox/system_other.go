//go:build !linux && !darwin

package sandbox

import "runtime"

// mechanisms returns the only one, which restricts nothing.
func mechanisms() []mechanism { return []mechanism{none{}} }

// none is the mechanism of systems that have none.
type none struct{}

func (none) available(Policy) error {
	return unavailable("acp-agent has none for %s, only for Linux and macOS", runtime.GOOS)
}

func (m none) run(p Policy, _ Launch, _ func(Launch) error) error { return m.available(p) }

func devices() []string { return nil }

func systemPaths() []string { return nil }

func mayAccess(string, bool) bool { return false }

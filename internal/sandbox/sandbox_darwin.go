package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// launcher is the program of macOS that starts another one with a profile.
const launcher = "/usr/bin/sandbox-exec"

// Run calls start, if there is a launcher.
func (p Policy) Run(start func() error) error {
	if p.Mode == Off {
		return start()
	}
	if _, err := os.Stat(launcher); err != nil {
		return unavailable("%w", err)
	}
	return start()
}

// Wrap returns the command line that starts a program as p says, or nil if that is its own.
func (p Policy) Wrap(program string, args []string) []string {
	if p.Mode == Off {
		return nil
	}
	return append([]string{launcher, "-p", p.seatbelt(), program}, args...)
}

func devices() []string { return []string{"/dev"} }

func systemPaths() []string { return seatbeltPaths() }

// mayAccess reports whether we may read or write a file or directory.
func mayAccess(path string, write bool) bool {
	mode := uint32(unix.R_OK)
	if write {
		mode = unix.W_OK
	}
	return unix.Access(path, mode) == nil
}

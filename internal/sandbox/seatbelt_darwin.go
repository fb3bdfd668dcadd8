package sandbox

import "os"

// launcher is the program of macOS that starts another one with a profile.
const launcher = "/usr/bin/sandbox-exec"

// available returns nil if processes can be restricted, and otherwise an [ErrUnavailable] that
// explains why not.
func (p Policy) available() error {
	if _, err := os.Stat(launcher); err != nil {
		return unavailable("%w", err)
	}
	return nil
}

// run calls start with the launch of sandbox-exec, which starts the program of l.
func (p Policy) run(l Launch, start func(Launch) error) error {
	if err := p.available(); err != nil {
		return err
	}
	args := append([]string{launcher, "-p", p.seatbeltProfile(), l.Path}, l.Args[1:]...)
	return start(Launch{Path: launcher, Args: args})
}

// devices returns what every process may write to.
func devices() []string { return []string{"/dev"} }

// systemPaths returns what every process may read in mode Strict.
func systemPaths() []string { return seatbeltPaths() }

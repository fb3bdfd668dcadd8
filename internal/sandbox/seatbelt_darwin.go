package sandbox

import "os"

// launcher is the program of macOS that starts another one with a profile.
const launcher = "/usr/bin/sandbox-exec"

// seatbelt is the mechanism of macOS.
type seatbelt struct{}

func (seatbelt) available(Policy) error {
	if _, err := os.Stat(launcher); err != nil {
		return unavailable("%w", err)
	}
	return nil
}

func (m seatbelt) run(p Policy, l Launch, start func(Launch) error) error {
	if err := m.available(p); err != nil {
		return err
	}
	args := append([]string{launcher, "-p", p.seatbeltProfile(), l.Path}, l.Args[1:]...)
	return start(Launch{launcher, args})
}

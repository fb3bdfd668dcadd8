package sandbox

import (
	"errors"
	"fmt"
)

// Launch is how a program is started.
type Launch struct {
	// Path is the program.
	Path string
	// Args are its arguments, beginning with its name.
	Args []string
}

// Run calls start with how to start the program of l, so that the process is held to p. start must
// start the process on its own goroutine, or replace ours by it. The process must not be tied to
// the thread that starts it (see Pdeathsig in [syscall.SysProcAttr]), which may end at once.
//
// If the process cannot be restricted, Run returns an error without calling start. It is
// [ErrUnavailable] if the system has no sandbox.
func (p Policy) Run(l Launch, start func(Launch) error) error {
	switch {
	case p.Hosts.Limited && p.Outlet == nil:
		return setupError(errors.New("a list of hosts needs a proxy"))
	case p.Mode == Off:
		return start(l)
	}
	return p.run(l, start)
}

// ErrUnavailable is the cause of an error that says why this system has no sandbox.
var ErrUnavailable = errors.New("the sandbox is not available")

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, fmt.Errorf(format, args...))
}

func setupError(err error) error { return fmt.Errorf("%w: %w", ErrSetup, err) }

// ErrSetup is the cause of an error that says why a mechanism that is available failed.
var ErrSetup = errors.New("cannot create the sandbox")

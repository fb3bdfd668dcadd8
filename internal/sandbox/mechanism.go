package sandbox

import (
	"errors"
	"fmt"
)

// mechanism is a means of the system to hold a process to a [Policy]. Each is a file of its own:
// landlock_linux.go, seatbelt_darwin.go.
type mechanism interface {
	// available returns nil if processes can be restricted as p says, and otherwise an
	// [ErrUnavailable] that explains why not.
	available(p Policy) error
	// run calls start once, or returns an error. start launches, or execs into, the Launch it
	// receives. That process is restricted by p from its first instruction. A mechanism that
	// restricts the calling thread gives start the launch as it is. One that is a program of its
	// own, such as sandbox-exec or bubblewrap, gives it a launch of that program.
	run(p Policy, l Launch, start func(Launch) error) error
}

// Launch is how a program is started.
type Launch struct {
	// Path is the program.
	Path string
	// Args are its arguments, beginning with its name.
	Args []string
}

// choose returns the mechanism that enforces p: the first of all that is available. Without one it
// returns the last, whose error says why there is no sandbox.
func choose(all []mechanism, p Policy) mechanism {
	last := len(all) - 1
	for _, m := range all[:last] {
		if m.available(p) == nil {
			return m
		}
	}
	return all[last]
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
	return choose(mechanisms(), p).run(p, l, start)
}

// ErrUnavailable is the cause of an error that says why there is no sandbox on this system.
var ErrUnavailable = errors.New("the sandbox is not available")

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, fmt.Errorf(format, args...))
}

func setupError(err error) error { return fmt.Errorf("%w: %w", ErrSetup, err) }

// ErrSetup is the cause of an error that says why a mechanism that is available failed.
var ErrSetup = errors.New("cannot create the sandbox")

// Package sandbox restricts what a child process, and whatever that starts, may do with files.
//
// A [Policy] lists the places. On Linux the kernel enforces it with Landlock, for root too: a
// thread restricts itself, starts the child, and ends. Nothing else in our process is restricted,
// and a child cannot lift a restriction. There is no implementation for other systems.
//
// What the rules do not cover: modes, owners, times and extended attributes of files, files that
// the child was given open, sockets in the file system, the network, and kernel interfaces other
// than files that root can use. docs/security.md describes this for users.
package sandbox

import (
	"errors"
	"fmt"
	"runtime"
)

// Mode is how much a process is restricted.
type Mode string

const (
	// Off does not restrict it.
	Off Mode = ""
	// Write restricts what it creates, changes and removes.
	Write Mode = "write"
	// Strict also restricts what it reads and executes.
	Strict Mode = "strict"
)

// ParseMode parses off, write or strict.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "off":
		return Off, nil
	case Write, Strict:
		return m, nil
	}
	return Off, fmt.Errorf("%q is not a mode of the sandbox: use off, write or strict", s)
}

// String returns the mode as ParseMode reads it.
func (m Mode) String() string {
	if m == Off {
		return "off"
	}
	return string(m)
}

// Policy says what a process may do. The zero Policy does not restrict it.
type Policy struct {
	Mode Mode
	// Write are the directories in which it may create, change and remove files, and files that it
	// may change. They are absolute, exist, and have no links on the way: a link could have been
	// planted by a process that was restricted to the place of the link. Terminals, /dev/null and
	// /dev/shm are added.
	Write []string
	// Read are the files and directories that it may read in mode Strict, besides those in Write
	// and those of the system. What does not exist is left out.
	Read []string
}

// ErrUnavailable is the cause of an error that says why there is no sandbox on this system.
var ErrUnavailable = errors.New("the sandbox is not available")

// Run calls start on a thread that is restricted as p says. A process that start starts on its own
// goroutine is restricted from its first instruction. The thread ends soon after start has
// returned, so the process must not be tied to it (see Pdeathsig in [syscall.SysProcAttr]). From
// then on our process cannot be traced or dumped by others.
//
// If the thread cannot be restricted, Run returns an error without calling start. It is
// [ErrUnavailable] if the system has no sandbox.
func (p Policy) Run(start func() error) error {
	if p.Mode == Off {
		return start()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if onMainThread() {
			// The main thread never ends. As long as it is held, another one runs start.
			err := p.Run(start)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		err := p.restrict() // the thread is never unlocked, and ends with this goroutine
		if err == nil {
			err = start()
		}
		done <- err
	}()
	return <-done
}

// Available returns nil if the system can restrict processes, and otherwise an [ErrUnavailable]
// with an explanation.
func Available() error {
	_, err := available()
	return err
}

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, fmt.Errorf(format, args...))
}

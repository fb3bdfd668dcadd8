//go:build unix && !linux

package process

import (
	"errors"
	"os/exec"
	"syscall"
)

// family cannot recognize the descendants of a child here: those that left the group live on.
type family struct{}

func newFamily() family { return family{} }

func (family) env() []string { return nil }

func (family) signalOutside(int, syscall.Signal) []int { return nil }

func (family) has(int) bool { return false }

// awaitEnd waits for a child. Its id may be reused from then on, but that of its group is not while
// the group has members.
func awaitEnd(cmd *exec.Cmd) { _ = cmd.Wait() }

// hasMembers reports whether a group has members. An error other than ESRCH means that it has one
// that we may not signal.
func hasMembers(pgid int) bool { return !errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) }

//go:build unix && !linux

package process

import (
	"errors"
	"os/exec"
	"syscall"
)

// family is not implemented on this system: descendants of a child that left its group live on.
type family struct{}

func newFamily() family { return family{} }

func (family) env() []string { return nil }

// remaining reports whether the group pgid has members. An error other than ESRCH means that it has
// one that we may not signal.
func (family) remaining(pgid int) (inGroup bool, outside []int) {
	return !errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH), nil
}

func (family) signal(int, syscall.Signal) bool { return false }

func (family) has(int) bool { return false }

// awaitEnd waits for a child. From then on its id may be reused, but the id of its group is not
// reused while the group has members.
func awaitEnd(cmd *exec.Cmd) { _ = cmd.Wait() }

// lifeline does nothing on this system: a group whose members ignore the end of their input lives
// on when our process is killed.
type lifeline struct{}

func newLifeline(int) lifeline { return lifeline{} }

func (lifeline) close() {}

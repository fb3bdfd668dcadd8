//go:build unix

package process

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// group is the process group that a child leads.
type group struct {
	mu     sync.Mutex
	pgid   int
	closed bool // the id may have been reused
}

// startGroup starts c as the leader of a new group.
func startGroup(c Command, s stdio) (*exec.Cmd, *group, error) {
	cmd, err := start(context.Background(), c, s, attributes())
	if err != nil {
		return nil, nil, err
	}
	return cmd, &group{pgid: cmd.Process.Pid}, nil
}

func (g *group) terminate() { g.signal(syscall.SIGTERM) }
func (g *group) kill()      { g.signal(syscall.SIGKILL) }

// signal sends s to the group, or only checks it if s is 0. It reports whether the group has
// members; an error other than ESRCH means that it has one that we may not signal.
func (g *group) signal(s syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	return !errors.Is(syscall.Kill(-g.pgid, s), syscall.ESRCH)
}

// end ends the rest of the group after its leader has been waited for, and makes later signals do
// nothing. The id of a group is not reused while it has members.
func (g *group) end(grace time.Duration) {
	g.terminate()
	if !g.emptyWithin(grace) {
		g.kill()
		// Killed processes stay zombies where process 1 does not reap them, so do not wait for
		// long.
		g.emptyWithin(100 * time.Millisecond)
	}
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

func (g *group) emptyWithin(grace time.Duration) bool {
	const interval = 5 * time.Millisecond // there is no notification of a grandchild's end
	for deadline := time.Now().Add(grace); g.signal(0); time.Sleep(interval) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

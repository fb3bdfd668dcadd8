//go:build unix

package process

import (
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
	closed bool // its number may belong to others by now
}

// startGroup starts cmd as the leader of a new group.
func startGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &group{pgid: cmd.Process.Pid}, nil
}

func (g *group) terminate() { g.signal(syscall.SIGTERM) }
func (g *group) kill()      { g.signal(syscall.SIGKILL) }

// signal sends s to the group; 0 only asks. It reports whether anybody is left. An error other than
// ESRCH means that there is somebody whom we may not signal.
func (g *group) signal(s syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	return !errors.Is(syscall.Kill(-g.pgid, s), syscall.ESRCH)
}

// end ends what is left of the group after its leader was waited for, and makes later signals
// do nothing. A group's number is not given away while it has members.
func (g *group) end(grace time.Duration) {
	g.terminate()
	if !g.emptyWithin(grace) {
		g.kill()
		// Killed processes can stay as zombies where process 1 does not collect them.
		g.emptyWithin(reapWait)
	}
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

// reapWait is how long killed grandchildren are waited for.
const reapWait = 100 * time.Millisecond

func (g *group) emptyWithin(grace time.Duration) bool {
	const look = 5 * time.Millisecond // nothing announces the end of a grandchild
	for deadline := time.Now().Add(grace); g.signal(0); time.Sleep(look) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

//go:build unix

package process

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// group is the process group that a child leads, with those of its descendants that left it.
type group struct {
	family   family
	lifeline lifeline
	network  *network

	mu     sync.Mutex
	pgid   int
	closed bool // the id may have been reused
}

// startGroup starts c as the leader of a new session, whose group has the same id. There it cannot
// read from our terminal or type into it.
func startGroup(c Command, s stdio) (*exec.Cmd, *group, error) {
	var f family
	if !c.keepsDaemons {
		f = newFamily()
		s.env = f.env()
	}
	cmd, network, err := start(context.Background(), c, s, &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		return nil, nil, err
	}
	pgid := cmd.Process.Pid
	return cmd, &group{family: f, lifeline: newLifeline(pgid), network: network, pgid: pgid}, nil
}

func (g *group) terminate() { g.signal(syscall.SIGTERM) }
func (g *group) kill()      { g.signal(syscall.SIGKILL) }

// signal sends s to the group.
func (g *group) signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		_ = syscall.Kill(-g.pgid, s)
	}
}

// end ends the rest of the group and of the family after [awaitEnd], and makes later signals do
// nothing.
func (g *group) end(grace time.Duration) {
	if !g.endsWith(syscall.SIGTERM, grace) {
		g.endsWith(syscall.SIGKILL, 100*time.Millisecond) // one that hangs in the kernel stays
	}
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.lifeline.close()
	g.network.close()
}

// endsWith sends s once to each remaining process of the group and the family, and reports whether
// all of them ended in time.
func (g *group) endsWith(s syscall.Signal, grace time.Duration) bool {
	const interval = 5 * time.Millisecond // nothing announces the end of a grandchild
	deadline := time.Now().Add(grace)
	inGroup, outside := g.family.remaining(g.pgid)
	g.signal(s)
	for {
		outside = slices.DeleteFunc(outside, func(id int) bool { return !g.family.signal(id, s) })
		if !inGroup && len(outside) == 0 {
			return true
		}
		for inGroup || len(outside) > 0 {
			if time.Now().After(deadline) {
				return false
			}
			time.Sleep(interval)
			if inGroup {
				inGroup, _ = family{}.remaining(g.pgid)
			}
			outside = slices.DeleteFunc(outside, func(id int) bool { return !g.family.has(id) })
		}
		_, outside = g.family.remaining(g.pgid) // what they have started since
	}
}

// shellStatus returns the status that a shell reports of a process that has ended.
func shellStatus(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return state.ExitCode()
}

package proxy

import (
	"context"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// use is the use of a child by an activation, from before it is opened there until it has left.
type use struct {
	child   *child
	session *session
	shares  bool // the MCP servers in its working directory, with other sessions in the child
	alone   bool // it needs these servers for its additional directories
	// opened says that its request has, or may have, changed the child's session. It is guarded by
	// the childSession.
	opened bool
}

// acquire begins a use of the child by s, and pins the child. It returns nil if the child is not
// running, or if s would share MCP servers that it or another session needs alone. The activation
// that s replaces does not count.
func (c *child) acquire(s *session, r opening, shares bool) *use {
	u := &use{child: c, session: s, shares: shares,
		alone: s.relays != nil && (s.roots.Additional().Len() > 0 || r.state.SentTools)}
	conflicts := func(other *use) bool {
		return other.session != r.previous && u.conflicts(other)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() || slices.ContainsFunc(c.uses, conflicts) {
		return nil
	}
	c.uses = append(c.uses, u)
	c.pins++
	return u
}

// conflicts reports whether two uses share MCP servers that one of them needs alone. Sessions with
// the same relays can share them.
func (u *use) conflicts(other *use) bool {
	s, with := u.session, other.session
	return u.shares && other.shares && (u.alone || other.alone) && s != with &&
		s.roots.Cwd() == with.roots.Cwd() && (s.relays == nil || s.relays != with.relays)
}

// release ends the use, unless it has ended. A child other than the main one ends with its last
// use.
func (u *use) release(ctx context.Context) error {
	c := u.child
	c.mu.Lock()
	c.uses = slices.DeleteFunc(c.uses, func(other *use) bool { return other == u })
	last := len(c.uses) == 0 && !c.place.isMain()
	if last {
		c.stop(nil)
	}
	c.mu.Unlock()
	if !last {
		return nil
	}
	return c.close(ctx)
}

// sharing returns the sessions that share MCP servers.
func (c *child) sharing() (all []*session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.uses {
		if u.shares {
			all = append(all, u.session)
		}
	}
	return all
}

// running reports whether sessions can use the child: it was started, and is not about to end.
func (c *child) running() bool {
	select {
	case <-c.started:
		return c.life.Err() == nil
	default:
		return false
	}
}

// awaitStart waits until the child was started, and reports whether it is running.
func (c *child) awaitStart(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
	}
	return c.running()
}

// awaitEnd waits until a child that is not running has ended, because another process is about to
// open its sessions.
func (c *child) awaitEnd(ctx context.Context) error {
	if c.running() {
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pin keeps the child from being stopped as idle until unpin is called. It returns false if the
// child is about to end.
func (c *child) pin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return false
	}
	c.pins++
	return true
}

// unpin undoes pin.
func (c *child) unpin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins--
	c.active = true
}

// whilePinned wraps work so that the child, which the caller has pinned, is unpinned at its end.
func (c *child) whilePinned(work backend.Work) backend.Work {
	return func() (backend.Raw, error) {
		defer c.unpin()
		return work()
	}
}

// stopWhenIdle stops the child once it is idle. It returns when the child is about to end.
func (c *child) stopWhenIdle() {
	for range pause.Every(c.life, c.limits.Idle) {
		c.stopIfIdle()
	}
}

// stopIfIdle stops the child if there was nothing to do for it since the last call, and its
// sessions can be opened in another process.
func (c *child) stopIfIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	busy := c.active || c.pins > 0 || c.router.working()
	c.active = false
	if busy || !c.info.Load && !c.info.Resume || !c.running() {
		return
	}
	c.log.Info("stopping an idle process of the agent until the next prompt in its sessions")
	c.stop(nil)
}

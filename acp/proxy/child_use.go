package proxy

import (
	"context"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// claim is a session's use of the MCP servers in its working directory.
type claim struct {
	session *session
	alone   bool // they serve its additional directories
}

// claim claims the MCP servers in the working directory of s. It returns false if other sessions
// use them and either s or one of the others needs them alone. The activation that s replaces and
// sessions with the same relays do not count.
func (c *child) claim(s *session, r opening) bool {
	alone := s.relays != nil && (s.roots.Additional().Len() > 0 || r.state.SentTools)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.claims {
		if other.session == s || other.session == r.previous ||
			s.relays != nil && other.session.relays == s.relays {
			continue
		}
		if other.session.roots.Cwd() == s.roots.Cwd() && (alone || other.alone) {
			return false
		}
	}
	c.claims = append(c.claims, claim{s, alone})
	return true
}

// claimants returns the sessions that have claimed MCP servers.
func (c *child) claimants() (all []*session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.claims {
		all = append(all, of.session)
	}
	return all
}

// unclaim undoes claim once, if s has claimed anything. A session that is opened again claims for
// its new session of the child before it leaves the old one.
func (c *child) unclaim(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.claims, func(of claim) bool { return of.session == s })
	if at >= 0 {
		c.claims = slices.Delete(c.claims, at, at+1)
	}
}

// awaitEnd waits until a child that was stopped as idle has ended, because another process is about
// to open its sessions.
func (c *child) awaitEnd(ctx context.Context) error {
	c.mu.Lock()
	retired := c.retired
	c.mu.Unlock()
	if !retired {
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// running reports whether sessions can use the child.
func (c *child) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.retired && !c.ended.Load()
}

// use reports whether the child is running. If it is, it is not stopped as idle until unuse is
// called.
func (c *child) use() bool { return c.begin(0) }

// acquire adds a session that the child serves, and a use for opening it. It returns false if the
// child is not running.
func (c *child) acquire() bool { return c.begin(1) }

func (c *child) begin(refs int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired || c.ended.Load() {
		return false
	}
	c.refs += refs
	c.uses++
	return true
}

// unuse undoes use.
func (c *child) unuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses--
	c.active.Store(true)
}

// whileUsed wraps work so that it ends a use of the child, which the caller has begun.
func (c *child) whileUsed(work backend.Work) backend.Work {
	return func() (backend.Raw, error) {
		defer c.unuse()
		return work()
	}
}

// retain adds a session that the child serves.
func (c *child) retain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refs++
}

// release undoes retain. A child other than the main one ends with the last session that uses it.
func (c *child) release(ctx context.Context) error {
	c.mu.Lock()
	c.refs--
	last := c.refs == 0 && c.place != place{}
	c.retired = c.retired || last
	c.mu.Unlock()
	if !last {
		return nil
	}
	return c.close(ctx)
}

// stopWhenIdle stops the child once it is idle. It returns when ctx ends.
func (c *child) stopWhenIdle(ctx context.Context) {
	for range pause.Every(ctx, c.limits.Idle) {
		c.stopIfIdle()
	}
}

// stopIfIdle stops the child if there was nothing to do for it since the last call, and its
// sessions can be opened in another process.
func (c *child) stopIfIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active.Swap(false) || c.uses > 0 || !c.loadable.Load() || c.retired ||
		c.router.working() {
		return
	}
	c.log.Info("stopping an idle process of the agent until the next prompt in its sessions")
	c.retired = true
	c.stop(nil)
}

package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/workspace"
)

// children are the processes of the agent. The main child serves all messages without a session,
// and the sessions that need no process of their own. Other sessions share a child if they have the
// same additional directories or, if the agent is restricted to the roots, the same roots.
type children struct {
	mu     sync.Mutex
	living []*child // that have not ended, also those that are being started
	closed bool

	failures atomic.Int64 // failed starts and unexpected ends since a prompt was last answered
}

// childPlace says which sessions a child serves. The main child has the zero place.
type childPlace struct {
	args  []string         // for the roots, with which the process is started
	roots []workspace.Root // to which it is restricted; nil if the main child may serve them
	apart int              // counts the places that differ only in their sessions, which conflict
}

func (at childPlace) equal(other childPlace) bool {
	return slices.Equal(at.args, other.args) && slices.Equal(at.roots, other.roots) &&
		at.apart == other.apart
}

func (at childPlace) isMain() bool { return at.equal(childPlace{}) }

// atLocked returns the child of a place, unless it is about to end, or nil.
func (all *children) atLocked(at childPlace) *child {
	for _, c := range all.living {
		if c.place.equal(at) && c.life.Err() == nil {
			return c
		}
	}
	return nil
}

// main returns the main child, or nil if it is not running.
func (all *children) main() *child {
	all.mu.Lock()
	defer all.mu.Unlock()
	if c := all.atLocked(childPlace{}); c != nil && c.running() {
		return c
	}
	return nil
}

// list returns all children.
func (all *children) list() []*child {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Clone(all.living)
}

// remove removes a child that has ended, or could not be started.
func (all *children) remove(c *child) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.living = slices.DeleteFunc(all.living, func(other *child) bool { return other == c })
}

// close closes all children and prevents new ones.
func (all *children) close(ctx context.Context) error {
	all.mu.Lock()
	all.closed = true
	all.mu.Unlock()
	list := all.list()
	errs := make([]error, len(list))
	var closing sync.WaitGroup
	for i, c := range list {
		closing.Go(func() { errs[i] = c.close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// mainChild returns the main child, and starts it if it is not running.
func (p *proxy) mainChild(ctx context.Context) (*child, error) {
	return p.childAt(ctx, childPlace{})
}

// childAt returns the child of a place, and starts it if it is not running.
func (p *proxy) childAt(ctx context.Context, at childPlace) (*child, error) {
	for {
		c, isNew := p.claim(ctx, at)
		switch {
		case c == nil:
			return nil, backend.ErrClosed
		case isNew:
			return c, c.start(ctx)
		case c.awaitStart(ctx):
			return c, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// claim returns the child of a place. If it is new, the caller must start it. claim returns nil if
// the proxy was closed.
func (p *proxy) claim(ctx context.Context, at childPlace) (c *child, isNew bool) {
	all := &p.children
	all.mu.Lock()
	defer all.mu.Unlock()
	if c = all.atLocked(at); c != nil || all.closed {
		return c, false
	}
	c = p.newChild(ctx, at)
	all.living = append(all.living, c)
	return c, true
}

// childFor begins a use of a child by b, which is to open a session with a saved state in place of
// previous. The child is pinned. Because programs are updated while they run, a new child may have
// other capabilities than the last one. The capabilities of the child itself decide.
func (p *proxy) childFor(
	ctx context.Context, b, previous *bridge, cause backend.Cause, saved state,
) (u *childUse, unpin func(), err error) {
	takes := cause == backend.New || !p.options.Profile.Roots.OnlyNew
	choose := func(advertised bool) (profiles.RootsMode, []string) {
		return p.options.Profile.Roots.Choose(advertised && takes, b.roots.Additional())
	}
	_, flags := choose(p.agentInfo().AdditionalDirectories)
	at := childPlace{args: flags}
	if p.isRestricted() {
		at.roots = b.host.Workspace().Opened()
	}
	if replaced := previous.running(); replaced != nil {
		at.apart = replaced.child.place.apart
	}
	for {
		c, err := p.childAt(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		mode, wanted := choose(c.info.AdditionalDirectories)
		if at.args == nil && len(wanted) > 0 {
			at.args = wanted
			continue
		}
		u := newChildUse(c, b, mode, saved)
		if unpin := c.uses.begin(u, previous); unpin != nil {
			return u, unpin, nil
		}
		if c.running() { // it has conflicting sessions
			at.apart++
		}
	}
}

// backOff waits before a start that follows several failures.
func (p *proxy) backOff(ctx context.Context) error {
	failures := p.children.failures.Load()
	if failures < 2 {
		return nil
	}
	delay := p.options.limits.Backoff << min(failures-2, 5)
	p.log.Warn("the agent failed several times: waiting before the next start",
		"failures", failures, "delay", delay)
	return pause.For(ctx, delay)
}

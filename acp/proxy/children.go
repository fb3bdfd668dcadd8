package proxy

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// children are the processes of the agent. The main child serves all messages without a session,
// and the sessions that need no process of their own. Other sessions share a child if they have the
// same additional directories or, if the agent is restricted to the roots, the same roots.
type children struct {
	mu     sync.Mutex
	all    []*child // that have not ended, also those that are being started
	closed bool

	failures atomic.Int64 // failed starts and unexpected ends since a prompt was last answered
}

// place says which sessions a child serves. The main child has the zero place.
type place struct {
	args  []string        // for the roots, with which the process is started
	roots []profiles.Root // to which it is restricted; nil if the main child may serve them
	// apart keeps sessions apart that the rest would put together: it is the *relays that those in
	// the place have, or a pointer that nothing else has. It is nil where none are kept apart.
	apart any
}

func (at place) equal(other place) bool {
	return slices.Equal(at.args, other.args) && slices.Equal(at.roots, other.roots) &&
		at.apart == other.apart
}

func (at place) isMain() bool { return at.equal(place{}) }

// atLocked returns the child of a place, unless it is about to end, or nil.
func (cs *children) atLocked(at place) *child {
	for _, c := range cs.all {
		if c.place.equal(at) && c.life.Err() == nil {
			return c
		}
	}
	return nil
}

// main returns the main child, or nil if it is not running.
func (cs *children) main() *child {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.atLocked(place{}); c != nil && c.running() {
		return c
	}
	return nil
}

// list returns all children.
func (cs *children) list() []*child {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Clone(cs.all)
}

// remove removes a child that has ended, or could not be started.
func (cs *children) remove(c *child) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.all = slices.DeleteFunc(cs.all, func(other *child) bool { return other == c })
}

// close closes all children and prevents new ones.
func (cs *children) close(ctx context.Context) error {
	cs.mu.Lock()
	cs.closed = true
	cs.mu.Unlock()
	list := cs.list()
	errs := make([]error, len(list))
	var closing sync.WaitGroup
	for i, c := range list {
		closing.Go(func() { errs[i] = c.close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// mainChild returns the main child, and starts it if it is not running.
func (p *proxy) mainChild(ctx context.Context) (*child, error) { return p.childAt(ctx, place{}) }

// childAt returns the child of a place, and starts it if it is not running.
func (p *proxy) childAt(ctx context.Context, at place) (*child, error) {
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
func (p *proxy) claim(ctx context.Context, at place) (c *child, isNew bool) {
	cs := &p.children
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c = cs.atLocked(at); c != nil || cs.closed {
		return c, false
	}
	c = p.newChild(ctx, at)
	cs.all = append(cs.all, c)
	return c, true
}

// childFor begins a use of a child by the session of r. Because programs are updated while they
// run, a new child may have other capabilities than the last one. The capabilities of the child
// itself decide.
func (p *proxy) childFor(ctx context.Context, r *openRequest) (*use, error) {
	s := r.session
	takes := r.cause == backend.New || !p.options.Profile.Roots.OnlyNew
	choose := func(advertised bool) (profiles.RootsMode, []string) {
		return p.options.Profile.Roots.Choose(advertised && takes, s.roots.Additional())
	}
	_, flags := choose(p.agentInfo().AdditionalDirectories)
	at := place{args: flags, roots: p.sandboxRoots(s)}
	if replaced := r.replaced(); replaced != nil && len(flags) == 0 {
		at.apart = replaced.child.place.apart
	}
	for apart := []any{s.servers.relays, new(byte)}; ; {
		c, err := p.childAt(ctx, at)
		if err != nil {
			return nil, err
		}
		mode, wanted := choose(c.info.AdditionalDirectories)
		if at.args == nil && at.apart == nil && len(wanted) > 0 {
			at.args = wanted
			continue
		}
		if u := c.acquire(r, mode); u != nil {
			return u, nil
		}
		if c.running() { // it has conflicting sessions, which the last place cannot have
			at.apart, apart = apart[0], apart[1:]
		}
	}
}

// use is the use of a child by a session, from before that is opened there until it has left. The
// child and the childSession list their uses.
type use struct {
	child   *child
	session *session
	mode    profiles.RootsMode // how the child is given the roots
	shares  bool               // the MCP servers in its working directory, with other sessions
	alone   bool               // it needs these servers for its additional directories
	// changed says that its request has, or may have, changed the child's session. It is guarded by
	// the childSession.
	changed bool
}

// acquire begins a use of the child by the session of r, and pins the child. It returns nil if the
// child is not running, or if the session would share MCP servers that it or another one needs
// alone. The activation that r replaces does not count.
func (c *child) acquire(r *openRequest, mode profiles.RootsMode) *use {
	s := r.session
	u := &use{child: c, session: s, mode: mode,
		shares: mode == profiles.RootsByContext &&
			c.proxy.options.Profile.Roots.SharesServers,
		alone: s.servers.relays != nil && (s.roots.Additional().Len() > 0 || r.saved.SentTools)}
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
	relays := s.servers.relays
	return u.shares && other.shares && (u.alone || other.alone) && s != with &&
		s.roots.Cwd() == with.roots.Cwd() && (relays == nil || relays != with.servers.relays)
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

// setAgentInfo records a child's answer to initialize. The client cannot be told about changed
// capabilities, but messages to the agent follow them from now on.
func (p *proxy) setAgentInfo(info client.Agent) {
	p.mu.Lock()
	before := p.info
	p.info = info
	p.mu.Unlock()
	if profile := p.options.Profile; before.Raw == nil && !profile.IsChecked(info.Release) {
		p.log.Info("the agent has another major version than the one that acp-agent was tested with",
			"agent", info.Name, "version", info.Release, "tested", profile.Checked)
	}
	if before.Raw != nil && !bytes.Equal(before.Raw, info.Raw) {
		p.log.Warn("the agent's capabilities have changed since the editor connected: "+
			"restart the connection to use all of them", "agent", info.Name)
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

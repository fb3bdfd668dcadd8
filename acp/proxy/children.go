package proxy

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/workspace"
)

// children are the running processes of the agent. Sessions whose roots need the same flags share one. The main child has no
// flags, and also serves everything that names no session.
type children struct {
	mu       sync.Mutex
	slots    map[string]*slot // by flags, joined by NUL
	all      map[*child]struct{}
	failures int // failed starts and unexpected ends since a prompt was last answered
	closed   bool
}

// slot is the place of the one child that runs with certain flags.
type slot struct {
	starting chan struct{} // a semaphore, held while the child is started
	child    *child        // nil if there is none; guarded by children.mu
}

func newChildren() children {
	return children{slots: make(map[string]*slot), all: make(map[*child]struct{})}
}

// slot returns the slot of the child with flags.
func (cs *children) slot(flags []string) *slot {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	key := strings.Join(flags, "\x00")
	s := cs.slots[key]
	if s == nil {
		s = &slot{starting: make(chan struct{}, 1)}
		cs.slots[key] = s
	}
	return s
}

// running returns the child in a slot, or nil if it is not running.
func (cs *children) running(s *slot) *child {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if s.child == nil || !s.child.running() {
		return nil
	}
	return s.child
}

// main returns the main child, or nil if it is not running.
func (cs *children) main() *child { return cs.running(cs.slot(nil)) }

// list returns all children that are running.
func (cs *children) list() []*child {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Collect(maps.Keys(cs.all))
}

// add adds a child. It returns false if the proxy was closed.
func (cs *children) add(c *child) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.all[c] = struct{}{}
	return !cs.closed
}

// remove removes a child that has ended.
func (cs *children) remove(c *child) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.all, c)
	for _, s := range cs.slots {
		if s.child == c {
			s.child = nil
		}
	}
	if c.crashed.Load() || c.whyKilled() != nil {
		cs.failures++
	}
}

// startFailed counts a failed start.
func (cs *children) startFailed() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.failures++
}

// answered resets the count of failures, because a prompt was answered.
func (cs *children) answered() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.failures = 0
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
func (p *proxy) mainChild(ctx context.Context) (*child, error) { return p.childWithFlags(ctx, nil) }

// childWithFlags returns the child with flags, and starts it if it is not running.
func (p *proxy) childWithFlags(ctx context.Context, flags []string) (*child, error) {
	s := p.children.slot(flags)
	if c := p.children.running(s); c != nil {
		return c, nil
	}
	select {
	case s.starting <- struct{}{}:
		defer func() { <-s.starting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c := p.children.running(s); c != nil {
		return c, nil
	}
	c, err := p.start(ctx, flags)
	if err != nil {
		return nil, err
	}
	p.children.mu.Lock()
	defer p.children.mu.Unlock()
	s.child = c
	return c, nil
}

// childFor returns a child for a session with roots, acquired, and how it takes the roots. A child may have
// other capabilities than the last one, because programs are updated while they run; then its own count.
func (p *proxy) childFor(ctx context.Context, roots workspace.Roots) (*child, RootsMode, error) {
	_, flags := rootsMode(p.options.Profile, p.agentInfo(), roots)
	for {
		c, err := p.childWithFlags(ctx, flags)
		if err != nil {
			return nil, "", err
		}
		mode, wanted := rootsMode(p.options.Profile, c.info, roots)
		if len(flags) == 0 && len(wanted) > 0 {
			flags = wanted
		} else if c.acquire() {
			return c, mode, nil
		}
	}
}

// start starts a child and initializes it. After repeated failures it waits first.
func (p *proxy) start(ctx context.Context, flags []string) (*child, error) {
	if err := p.backOff(ctx); err != nil {
		return nil, err
	}
	var c *child
	added := make(chan struct{})
	c, err := p.startChild(ctx, flags, func() {
		<-added
		p.children.remove(c)
	})
	if err != nil {
		p.children.startFailed()
		return nil, p.options.Profile.explainStart(err)
	}
	open := p.children.add(c)
	close(added)
	if !open {
		return nil, errors.Join(backend.ErrClosed, c.close(context.WithoutCancel(ctx)))
	}
	if err := p.introduce(ctx, c); err != nil {
		err = errors.Join(err, c.close(context.WithoutCancel(ctx)))
		if !c.crashed.Load() { // otherwise remove has counted it
			p.children.startFailed()
		}
		return nil, err
	}
	c.setLoadable(c.info.Load || c.info.Resume)
	return c, nil
}

// introduce initializes a new child, and logs it in if the other children are logged in.
func (p *proxy) introduce(ctx context.Context, c *child) error {
	p.mu.Lock()
	initialize, login := p.initialize, p.login
	p.mu.Unlock()
	if err := c.initialize(ctx, initialize); err != nil {
		return err
	}
	p.setAgentInfo(c.info)
	if login == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.limits.startTimeout)
	defer cancel()
	if _, err := c.call(ctx, authenticateMethod, login)(); err != nil {
		c.log.Warn("the restarted agent is not logged in", "error", err)
	}
	return nil
}

// setAgentInfo records a child's answer to initialize. The client cannot be told about changes, but what is sent to the agent
// from now on follows them.
func (p *proxy) setAgentInfo(info client.Agent) {
	p.mu.Lock()
	before := p.info
	p.info = info
	p.mu.Unlock()
	if before.Raw != nil && !bytes.Equal(before.Raw, info.Raw) {
		p.log.Warn("the agent's capabilities have changed since the editor connected: restart the connection to use all of them",
			"agent", info.Name)
	}
}

// backOff waits before a start that follows several failures.
func (p *proxy) backOff(ctx context.Context) error {
	p.children.mu.Lock()
	failures := p.children.failures
	p.children.mu.Unlock()
	if failures < 2 {
		return nil
	}
	delay := p.options.limits.backoff << min(failures-2, 5)
	p.log.Warn("the agent failed several times: waiting before the next start", "failures", failures, "delay", delay)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

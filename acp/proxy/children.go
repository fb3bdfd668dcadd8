package proxy

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/workspace"
)

// children are the running processes of the agent. The main child serves every session that needs no flags, and everything
// that names no session.
type children struct {
	starting chan struct{} // a semaphore, held while the main child is started

	mu       sync.Mutex
	main     *child
	all      map[*child]struct{}
	failures int // failed starts and unexpected ends since a prompt was last answered
	closed   bool
}

func newChildren() children {
	return children{starting: make(chan struct{}, 1), all: make(map[*child]struct{})}
}

// running returns the main child, or nil if it is not running.
func (cs *children) running() *child {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.main == nil || cs.main.ended.Load() {
		return nil
	}
	return cs.main
}

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
func (p *proxy) mainChild(ctx context.Context) (*child, error) {
	if c := p.children.running(); c != nil {
		return c, nil
	}
	select {
	case p.children.starting <- struct{}{}:
		defer func() { <-p.children.starting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c := p.children.running(); c != nil {
		return c, nil
	}
	c, err := p.start(ctx, nil)
	if err != nil {
		return nil, err
	}
	p.children.mu.Lock()
	defer p.children.mu.Unlock()
	p.children.main = c
	return c, nil
}

// childFor returns a child for a session with roots, which the caller must release, and how it takes the roots. It prefers the
// child of current, which may be nil. A child may have other capabilities than the last one, because programs are updated
// while they run; then its own count.
func (p *proxy) childFor(ctx context.Context, roots workspace.Roots, current *childSession) (*child, RootsMode, error) {
	_, flags := rootsMode(p.options.Profile, p.agentInfo(), roots)
	c, err := p.childWithFlags(ctx, flags, current)
	if err != nil {
		return nil, "", err
	}
	mode, wanted := rootsMode(p.options.Profile, c.info, roots)
	if len(flags) == 0 && len(wanted) > 0 {
		if c, err = p.childWithFlags(ctx, wanted, current); err != nil {
			return nil, "", err
		}
		mode, _ = rootsMode(p.options.Profile, c.info, roots)
	}
	c.retain()
	return c, mode, nil
}

// childWithFlags returns a child that was started with flags.
func (p *proxy) childWithFlags(ctx context.Context, flags []string, current *childSession) (*child, error) {
	if len(flags) == 0 {
		return p.mainChild(ctx)
	}
	if current != nil && current.alive() && slices.Equal(current.child.flags, flags) {
		return current.child, nil
	}
	return p.start(ctx, flags)
}

// start starts a child and initializes it. After repeated failures it waits first.
func (p *proxy) start(ctx context.Context, flags []string) (*child, error) {
	if err := p.backOff(ctx); err != nil {
		return nil, err
	}
	command := p.command
	command.Args = append(slices.Clone(command.Args), flags...)
	command.Env = append(slices.Clone(command.Env), p.askEnv()...)
	var c *child
	added := make(chan struct{})
	c, err := p.startChild(ctx, command, func() {
		<-added
		p.children.remove(c)
	})
	if err != nil {
		p.children.startFailed()
		return nil, p.options.Profile.explainStart(err)
	}
	c.flags = flags
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

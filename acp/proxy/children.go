package proxy

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/workspace"
)

// children are the agents that run. One, the main child, serves every session that needs no flags, and whatever
// is about no session.
type children struct {
	starting chan struct{} // holds one value while the main child is started

	mu       sync.Mutex
	main     *agent
	all      map[*agent]struct{}
	failures int // starts in a row that failed, and ends that were the child's own doing
	closed   bool
}

func newChildren() children {
	return children{starting: make(chan struct{}, 1), all: make(map[*agent]struct{})}
}

// running is the main child, nil if it does not run.
func (c *children) running() *agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.main == nil || c.main.hasEnded() {
		return nil
	}
	return c.main
}

// list are all children that run.
func (c *children) list() []*agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*agent
	for a := range c.all {
		list = append(list, a)
	}
	return list
}

// mainChild returns the main child, started if it does not run.
func (p *proxy) mainChild(ctx context.Context) (*agent, error) {
	if a := p.children.running(); a != nil {
		return a, nil
	}
	select {
	case p.children.starting <- struct{}{}:
		defer func() { <-p.children.starting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if a := p.children.running(); a != nil {
		return a, nil
	}
	a, err := p.start(ctx, nil)
	if err != nil {
		return nil, err
	}
	p.children.mu.Lock()
	defer p.children.mu.Unlock()
	p.children.main = a
	return a, nil
}

// childFor returns the child for a session with roots, held once, and how it is given them. What is known of the agent may
// be of another version than the child: an update changes programs that run. Then what the child says counts.
func (p *proxy) childFor(ctx context.Context, roots workspace.Roots, before *link) (*agent, RootsMode, error) {
	_, flags := way(p.profile, p.known(), roots)
	a, err := p.childWith(ctx, flags, before)
	if err != nil {
		return nil, "", err
	}
	w, wants := way(p.profile, a.info, roots)
	if len(flags) == 0 && len(wants) > 0 {
		if a, err = p.childWith(ctx, wants, before); err != nil {
			return nil, "", err
		}
		w, _ = way(p.profile, a.info, roots)
	}
	a.hold()
	return a, w, nil
}

// childWith returns a child that has flags.
func (p *proxy) childWith(ctx context.Context, flags []string, before *link) (*agent, error) {
	if len(flags) == 0 {
		return p.mainChild(ctx)
	}
	if before != nil && before.alive() && before.agent.owned && slices.Equal(before.agent.flags, flags) {
		return before.agent, nil
	}
	return p.start(ctx, flags)
}

// start starts a child, and asks it who it is. After failures it waits first.
func (p *proxy) start(ctx context.Context, flags []string) (*agent, error) {
	if err := p.backOff(ctx); err != nil {
		return nil, err
	}
	command := p.command
	command.Args = append(slices.Clone(command.Args), flags...)
	command.Env = append(slices.Clone(command.Env), p.askEnv()...)
	var a *agent
	registered := make(chan struct{})
	a, err := startAgent(ctx, command, p.options, p.toClient(), func() {
		<-registered
		p.ended(a)
	})
	if err != nil {
		close(registered)
		p.failed()
		return nil, err
	}
	a.owned, a.flags = len(flags) > 0, flags
	closed := p.register(a)
	close(registered)
	if closed {
		return nil, errors.Join(backend.ErrClosed, a.close(context.WithoutCancel(ctx)))
	}
	if err := p.introduce(ctx, a); err != nil {
		err = errors.Join(err, a.close(context.WithoutCancel(ctx)))
		if !a.byItself.Load() { // else it was counted
			p.failed()
		}
		return nil, err
	}
	return a, nil
}

// introduce has a new child initialized, and logged in as the others are.
func (p *proxy) introduce(ctx context.Context, a *agent) error {
	params, login := p.forNewChild()
	if err := a.initialize(ctx, params, p.options.limits.startTimeout); err != nil {
		return err
	}
	p.learn(a.info)
	if login == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.limits.startTimeout)
	defer cancel()
	if _, err := a.call(ctx, authenticateMethod, login)(); err != nil {
		a.log.Warn("the agent that was started anew is not logged in", "error", err)
	}
	return nil
}

// register notes a child, and reports whether it is too late for one.
func (p *proxy) register(a *agent) (closed bool) {
	c := &p.children
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[a] = struct{}{}
	return c.closed
}

// ended takes note that a child has ended.
func (p *proxy) ended(a *agent) {
	c := &p.children
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, a)
	if a.byItself.Load() || a.whyEnded() != nil {
		c.failures++
	}
}

// failed takes note that a start failed.
func (p *proxy) failed() {
	p.children.mu.Lock()
	defer p.children.mu.Unlock()
	p.children.failures++
}

// thrives takes note that a child has done what it is for.
func (p *proxy) thrives() {
	p.children.mu.Lock()
	defer p.children.mu.Unlock()
	p.children.failures = 0
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
	p.log.Warn("the agent failed several times: its start waits", "failures", failures, "delay", delay)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// learn records what a child answered to initialize. The client cannot be told about changes, but what is sent to the agent
// from now on follows them.
func (p *proxy) learn(info client.Agent) {
	p.mu.Lock()
	before := p.info
	p.info = info
	p.mu.Unlock()
	if before.Raw != nil && !bytes.Equal(before.Raw, info.Raw) {
		p.log.Warn("the agent's capabilities have changed since the editor connected: restart it to use all of them", "agent", info.Name)
	}
}

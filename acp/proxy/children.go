package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// children are the running processes of the agent. The main child serves all messages without a
// session, and the sessions that need no process of their own. Other sessions share a child if they
// have the same additional directories or, if the agent is restricted to the roots, the same roots.
type children struct {
	mu     sync.Mutex
	slots  map[place]*slot
	all    map[*child]struct{}
	closed bool

	numbers  atomic.Int64 // places with numbers so far
	failures atomic.Int64 // failed starts and unexpected ends since a prompt was last answered
}

// place identifies the child that serves a session. The zero place means the main child.
type place struct {
	flags  string // the arguments for the roots, joined by NUL
	roots  string // see sandboxRoots; "" if the main child may serve it
	number int64  // of a child for one session that must be kept apart from others
}

// args returns the arguments that the child is started with.
func (at place) args() []string {
	if at.flags == "" {
		return nil
	}
	return strings.Split(at.flags, "\x00")
}

// writable returns the roots that the child is restricted to.
func (at place) writable() (roots []profiles.Root) {
	_ = json.Unmarshal([]byte(at.roots), &roots) // there are none in ""
	return roots
}

// slot has the one child of a place.
type slot struct {
	starting chan struct{} // a semaphore, held while the child is started
	child    *child        // nil if there is none; guarded by children.mu
}

func newChildren() children {
	return children{slots: make(map[place]*slot), all: make(map[*child]struct{})}
}

// slot returns the slot of a place.
func (cs *children) slot(at place) *slot {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	s := cs.slots[at]
	if s == nil {
		s = &slot{starting: make(chan struct{}, 1)}
		cs.slots[at] = s
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
func (cs *children) main() *child { return cs.running(cs.slot(place{})) }

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
	for at, s := range cs.slots {
		if s.child != c {
			continue
		}
		s.child = nil
		if at.number != 0 {
			delete(cs.slots, at)
		}
	}
	if c.crashed.Load() {
		cs.failures.Add(1)
	}
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
	s := p.children.slot(at)
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
	c, err := p.start(ctx, at)
	if err != nil {
		return nil, err
	}
	p.children.mu.Lock()
	defer p.children.mu.Unlock()
	s.child = c
	return c, nil
}

// childFor begins a use of a child by s, and returns how the child takes the roots. Because
// programs are updated while they run, a new child may have other capabilities than the last one.
// The capabilities of the child itself decide.
func (p *proxy) childFor(
	ctx context.Context, s *session, r opening,
) (*use, profiles.RootsMode, error) {
	takes := r.Cause == backend.New || !p.options.Profile.Roots.OnlyNew
	_, flags := p.options.Profile.Roots.Choose(p.agentInfo().AdditionalDirectories && takes,
		s.roots.Additional())
	at := place{flags: strings.Join(flags, "\x00"), roots: p.sandboxRoots(s)}
	if current := r.current(); current != nil && len(flags) == 0 {
		at.number = current.child.place.number
	}
	for {
		c, err := p.childAt(ctx, at)
		if err != nil {
			return nil, "", err
		}
		mode, wanted := p.options.Profile.Roots.Choose(c.info.AdditionalDirectories && takes,
			s.roots.Additional())
		shares := mode == profiles.RootsByContext && p.options.Profile.Roots.SharesServers
		if at.flags == "" && at.number == 0 && len(wanted) > 0 {
			at.flags = strings.Join(wanted, "\x00")
			continue
		}
		if u := c.acquire(s, r, shares); u != nil {
			return u, mode, nil
		}
		if c.running() { // it has conflicting sessions
			at.number = p.numberFor(s, at.number)
		}
	}
}

// numberFor returns the number of the place for a session that must be kept apart from those in the
// place with the number tried: that of a session with the same relays, or a new one.
func (p *proxy) numberFor(s *session, tried int64) int64 {
	for _, c := range p.children.list() {
		if c.place.number == tried || c.place.number == 0 {
			continue
		}
		if slices.ContainsFunc(c.sharing(), func(other *session) bool {
			return other != s && other.relays == s.relays && s.relays != nil
		}) {
			return c.place.number
		}
	}
	return p.children.numbers.Add(1)
}

// start starts the child of a place and initializes it. After repeated failures it waits first.
func (p *proxy) start(ctx context.Context, at place) (*child, error) {
	if err := p.backOff(ctx); err != nil {
		return nil, err
	}
	release, err := p.admit(ctx)
	if err != nil {
		return nil, err
	}
	var c *child
	added := make(chan struct{})
	c, err = p.startChild(ctx, at, func() {
		<-added
		p.children.remove(c)
		release()
	})
	if err != nil {
		release()
		p.children.failures.Add(1)
		return nil, p.options.Profile.ExplainStart(err)
	}
	open := p.children.add(c)
	close(added)
	if !open {
		return nil, errors.Join(backend.ErrClosed, c.close(context.WithoutCancel(ctx)))
	}
	if err := p.introduce(ctx, c); err != nil {
		err = errors.Join(err, c.close(context.WithoutCancel(ctx)))
		if !c.crashed.Load() { // otherwise remove has counted it
			p.children.failures.Add(1)
		}
		return nil, p.options.Profile.ExplainStart(err)
	}
	c.loadable.Store(c.info.Load || c.info.Resume)
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
	ctx, cancel := context.WithTimeout(ctx, p.options.limits.StartTimeout)
	defer cancel()
	if _, err := c.request(ctx, protocol.Authenticate, login)(); err != nil {
		c.log.Warn("cannot log the restarted agent in", "error", err)
	}
	return nil
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

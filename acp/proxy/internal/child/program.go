package child

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
)

// Program is the agent's program, with the processes that run it. The main child serves all
// messages without a session, and the sessions that need no process of their own. Other sessions
// share a child if they have the same additional directories or, if the agent is restricted to the
// roots, the same roots.
type Program struct {
	config   Config
	failures atomic.Int64 // failed starts and unexpected ends since a prompt was last answered

	mu         sync.Mutex
	living     []*Process // that have not ended, also those that are being started
	closed     bool
	client     backend.Client // gets the messages that name no session
	initialize backend.Raw    // the params of initialize for every child
	info       client.Agent   // what the child that was initialized last said about itself
	login      backend.Raw    // the params of the authenticate that succeeded, nil if none did
}

// New returns a program of which no process runs.
func New(c Config) *Program { return &Program{config: c} }

// Place says which sessions a child serves. The main child has the zero place.
type Place struct {
	Args  []string         // for the roots, with which the process is started
	Roots []workspace.Root // to which it is restricted; nil if the main child may serve them
	Apart int              // counts the places that differ only in their sessions, which conflict
}

func (at Place) equal(other Place) bool {
	return slices.Equal(at.Args, other.Args) && slices.Equal(at.Roots, other.Roots) &&
		at.Apart == other.Apart
}

func (at Place) isMain() bool { return at.equal(Place{}) }

// Initialize starts the main child. Every child is sent initialize with these params. The first
// client gets the messages that name no session.
func (p *Program) Initialize(ctx context.Context, params backend.Raw, c backend.Client) error {
	p.mu.Lock()
	if p.client == nil {
		p.client = c
	}
	p.initialize = params
	p.mu.Unlock()
	_, err := p.Main(ctx)
	return err
}

// Info returns what the agent said about itself when it was last started.
func (p *Program) Info() client.Agent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

// setInfo records a child's answer to initialize. The client cannot be told about changed
// capabilities, but messages to the agent follow them from now on.
func (p *Program) setInfo(info client.Agent) {
	p.mu.Lock()
	before := p.info
	p.info = info
	p.mu.Unlock()
	log := p.config.Logger
	if profile := p.config.Profile; before.Raw == nil && !profile.IsChecked(info.Release) {
		log.Info("the agent has another major version than the one that acp-agent was tested with",
			"agent", info.Name, "version", info.Release, "tested", profile.Checked)
	}
	if before.Raw != nil && !bytes.Equal(before.Raw, info.Raw) {
		log.Warn("the agent's capabilities have changed since the editor connected: "+
			"restart the connection to use all of them", "agent", info.Name)
	}
}

// NoteAnswer notes that a prompt was answered: failures before that delay no start.
func (p *Program) NoteAnswer() { p.failures.Store(0) }

// Main returns the main child, and starts it if it is not running.
func (p *Program) Main(ctx context.Context) (*Process, error) { return p.At(ctx, Place{}) }

// At returns the child of a place, and starts it if it is not running.
func (p *Program) At(ctx context.Context, at Place) (*Process, error) {
	for {
		p.mu.Lock()
		c := p.atLocked(at)
		isNew := c == nil && !p.closed
		if isNew {
			c = p.newProcess(ctx, at)
			p.living = append(p.living, c)
		}
		p.mu.Unlock()
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

// atLocked returns the child of a place, unless it is about to end, or nil.
func (p *Program) atLocked(at Place) *Process {
	for _, c := range p.living {
		if c.Place.equal(at) && c.life.Err() == nil {
			return c
		}
	}
	return nil
}

// runningMain returns the main child, or nil if it is not running.
func (p *Program) runningMain() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.atLocked(Place{}); c != nil && c.Running() {
		return c
	}
	return nil
}

// list returns all children.
func (p *Program) list() []*Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.living)
}

// remove removes a child that has ended, or could not be started.
func (p *Program) remove(c *Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.living = slices.DeleteFunc(p.living, func(other *Process) bool { return other == c })
}

// backOff waits before a start that follows several failures.
func (p *Program) backOff(ctx context.Context) error {
	failures := p.failures.Load()
	if failures < 2 {
		return nil
	}
	delay := p.config.Limits.Backoff << min(failures-2, 5)
	p.config.Logger.Warn("the agent failed several times: waiting before the next start",
		"failures", failures, "delay", delay)
	return pause.For(ctx, delay)
}

// Call sends the main child a request that names no session, and starts it if it is not running.
func (p *Program) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if c := p.runningMain(); c != nil {
		return p.forward(ctx, c, method, params)
	}
	return func() (backend.Raw, error) {
		c, err := p.Main(ctx)
		if err != nil {
			return nil, err
		}
		return p.forward(ctx, c, method, params)()
	}
}

// forward passes a request on to c. Messages that c sends after its response reach the client after
// our response. A successful authenticate or logout is repeated for the other children, and
// authenticate for children that start later.
func (p *Program) forward(
	ctx context.Context, c *Process, method string, params backend.Raw,
) backend.Work {
	work := c.RequestFunc(ctx, method, params, func(backend.Raw, error) {
		c.Router.barrier.Add(jsonrpc.Answered(ctx))
	})
	if method != protocol.Authenticate && method != protocol.Logout {
		return work
	}
	return func() (backend.Raw, error) {
		result, err := work()
		if err != nil {
			return result, err
		}
		p.mu.Lock()
		p.login = nil
		if method == protocol.Authenticate {
			p.login = params
		}
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, p.config.Limits.StartTimeout)
		defer cancel()
		for _, other := range p.list() {
			if other == c || !other.awaitStart(ctx) {
				continue
			}
			if _, err := other.Request(ctx, method, params)(); err != nil {
				other.Log.Warn("another process of the agent rejected a request", "method", method,
					"error", err)
			}
		}
		return result, nil
	}
}

// Notify sends the main child a notification that names no session, if it is running.
func (p *Program) Notify(method string, params backend.Raw) {
	if c := p.runningMain(); c != nil {
		c.Notify(method, params)
	}
}

// Close ends all children with their process groups, and prevents new ones.
func (p *Program) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	list := p.list()
	errs := make([]error, len(list))
	var closing sync.WaitGroup
	for i, c := range list {
		closing.Go(func() { errs[i] = c.close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

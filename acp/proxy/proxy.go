package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/acp-agent/acp-agent/acp/child"
	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/strict"
	"github.com/acp-agent/acp-agent/acp/wire"
)

// Kind is the kind under which sessions of agents behind us are stored (A31). Their profile is the
// base name of the agent's program with its arguments, in the form that a shell takes.
const Kind = "proxy"

// New returns a runtime that answers from the agent that command starts. Nothing is started
// before Initialize.
func New(command child.Command, o Options) runtime.Runtime {
	return &proxy{command: command, options: o.withDefaults()}
}

type proxy struct {
	command child.Command
	options Options

	mu    sync.Mutex
	agent *agent // nil before Initialize
}

var errNotStarted = errors.New("the agent was not started: initialize comes first")

// Initialize starts the child and asks it who it is.
func (p *proxy) Initialize(ctx context.Context, params runtime.Raw, c runtime.Client) (runtime.Info, error) {
	// What the client and we speak is settled between us; the child is asked for what we speak.
	params, err := strict.Put(params, "protocolVersion", runtime.Raw(`1`))
	if err != nil {
		return runtime.Info{}, fmt.Errorf("initialize: %w", err)
	}
	a, err := startAgent(ctx, p.command, p.options, c)
	if err != nil {
		return runtime.Info{}, err
	}
	if err := a.initialize(ctx, params, p.options.StartTimeout); err != nil {
		return runtime.Info{}, errors.Join(err, a.close(context.WithoutCancel(ctx)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agent = a
	return runtime.Info{
		Kind:       Kind,
		Profile:    profile(p.command),
		Command:    commandLine(p.command),
		Initialize: a.info.Raw,
		MCP:        runtime.RuntimeConnects,
		Refuses:    []runtime.Cause{runtime.Load, runtime.Resume, runtime.Fork},
	}, nil
}

// Open makes a session in the child.
func (p *proxy) Open(ctx context.Context, a runtime.Activation, h runtime.Host) (runtime.Session, runtime.Opened, error) {
	agent, err := p.started()
	if err != nil {
		return nil, runtime.Opened{}, err
	}
	if a.Cause != runtime.New {
		return nil, runtime.Opened{}, wire.Errorf(wire.CodeMethodNotFound,
			"%s is not possible with an agent behind acp-agent: start a new session", a.Cause)
	}
	return agent.newSession(ctx, a.Params, h)
}

// Call passes a request on.
func (p *proxy) Call(ctx context.Context, method string, params runtime.Raw) runtime.Work {
	agent, err := p.started()
	if err != nil {
		return failed(err)
	}
	return agent.call(ctx, method, params)
}

// Notify passes a notification on.
func (p *proxy) Notify(_ context.Context, method string, params runtime.Raw) {
	if agent, err := p.started(); err == nil {
		agent.post(method, params)
	}
}

// Close ends the child and what it started.
func (p *proxy) Close(ctx context.Context) error {
	agent, err := p.started()
	if err != nil {
		return nil
	}
	return agent.close(ctx)
}

func (p *proxy) started() (*agent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agent == nil {
		return nil, errNotStarted
	}
	return p.agent, nil
}

func failed(err error) runtime.Work {
	return func() (runtime.Raw, error) { return nil, err }
}

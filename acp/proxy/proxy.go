package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// Kind is the kind under which sessions of agents behind us are stored (A31). Their profile is the
// base name of the agent's program with its arguments, in the form that a shell takes.
const Kind = "proxy"

// New returns a runtime that answers from the agent that command starts. Nothing is started
// before Initialize. It implements [backend.Foreign].
func New(command process.Command, o Options) backend.Backend {
	o = o.withDefaults()
	return &proxy{command: command, options: o, profile: o.Profile, log: o.Logger, children: newChildren()}
}

type proxy struct {
	command  process.Command
	options  Options
	profile  Profile
	log      *slog.Logger
	children children

	mu     sync.Mutex
	client backend.Client // nil before Initialize
	params backend.Raw    // of initialize, as each child is sent them
	info   client.Agent   // what the latest child said of itself
	login  backend.Raw    // params of the authenticate that succeeded, nil if none did
}

var errNotStarted = errors.New("the agent was not started: initialize comes first")

const (
	authenticateMethod = "authenticate"
	logoutMethod       = "logout"
)

// Initialize starts the child and asks it who it is, unless that is known and each session gets a child of
// its own.
func (p *proxy) Initialize(ctx context.Context, params backend.Raw, c backend.Client) (backend.Info, error) {
	// What the client and we speak is settled between us; the child is asked for what we speak.
	params, err := strictjson.Put(params, "protocolVersion", backend.Raw(`1`))
	if err != nil {
		return backend.Info{}, fmt.Errorf("initialize: %w", err)
	}
	p.mu.Lock()
	p.client, p.params = c, params
	p.mu.Unlock()
	if _, err := p.mainChild(ctx); err != nil {
		p.mu.Lock()
		p.client = nil
		p.mu.Unlock()
		return backend.Info{}, err
	}
	return backend.Info{
		Kind:       Kind,
		Profile:    agentName(p.command),
		Command:    commandLine(p.command),
		Initialize: p.known().Raw,
		MCP:        backend.BackendConnects,
	}, nil
}

// known is what is known of the agent.
func (p *proxy) known() client.Agent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

func (p *proxy) toClient() backend.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

// forNewChild is what a new child is sent.
func (p *proxy) forNewChild() (initialize, login backend.Raw) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.params, p.login
}

// Open gives an activation a session of the child's.
func (p *proxy) Open(ctx context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	if p.toClient() == nil {
		return nil, backend.Opened{}, errNotStarted
	}
	roots, err := rootsIn(a.Params)
	if err != nil {
		return nil, backend.Opened{}, err
	}
	s := &session{
		proxy: p, host: h, roots: roots, params: a.Params, history: a.History,
		announced: &announcement{}, connecting: make(chan struct{}, 1),
	}
	w := wanted{cause: a.Cause, state: readState(a.State), stop: a.Stop}
	w.unfit = p.profile.LateReplay || p.profile.LossyReplay && w.state.Way != RootsAuto
	s.announced.stale = w.state.Offered && a.Cause != backend.Fork
	if before, _ := a.Previous.(*session); before != nil {
		w.previous, s.announced = before, before.announced
	}
	s.relays = s.relaysFor(w.previous)
	opened, err := s.connect(ctx, w)
	if err != nil {
		return nil, backend.Opened{}, errors.Join(err, s.relays.leave(s))
	}
	return s, opened, nil
}

// Call passes a request on.
func (p *proxy) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if p.toClient() == nil {
		return failed(errNotStarted)
	}
	if a := p.children.running(); a != nil {
		return p.noted(ctx, a, method, params, a.passOn(ctx, method, params))
	}
	return func() (backend.Raw, error) {
		a, err := p.mainChild(ctx)
		if err != nil {
			return nil, err
		}
		return p.noted(ctx, a, method, params, a.passOn(ctx, method, params))()
	}
}

// noted is work that takes note of who is logged in: what the main child is told the others are told too.
func (p *proxy) noted(ctx context.Context, to *agent, method string, params backend.Raw, work backend.Work) backend.Work {
	if method != authenticateMethod && method != logoutMethod {
		return work
	}
	return func() (backend.Raw, error) {
		result, err := work()
		if err != nil {
			return result, err
		}
		p.mu.Lock()
		p.login = nil
		if method == authenticateMethod {
			p.login = params
		}
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, p.options.limits.startTimeout)
		defer cancel()
		for _, a := range p.children.list() {
			if a == to {
				continue
			}
			if _, err := a.call(ctx, method, params)(); err != nil {
				a.log.Warn("another process of the agent did not take this", "method", method, "error", err)
			}
		}
		return result, nil
	}
}

// Notify passes a notification on.
func (p *proxy) Notify(_ context.Context, method string, params backend.Raw) {
	if a := p.children.running(); a != nil {
		a.post(method, params)
	}
}

// Close ends the children and what they started.
func (p *proxy) Close(ctx context.Context) error {
	p.children.mu.Lock()
	p.children.closed = true
	p.children.mu.Unlock()
	list := p.children.list()
	errs := make([]error, len(list))
	var closing sync.WaitGroup
	for i, a := range list {
		closing.Go(func() { errs[i] = a.close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

func failed(err error) backend.Work {
	return func() (backend.Raw, error) { return nil, err }
}

// agentName names the agent that a command starts, to which its sessions belong (A31): the program's base
// name and its arguments, as "opencode acp". It must not change when the program moves.
func agentName(c process.Command) string {
	return line(ProgramName(c.Path), c.Args)
}

// commandLine is what a person types to reach this agent again.
func commandLine(c process.Command) string {
	return "acp-agent -- " + line(c.Path, c.Args)
}

func line(program string, args []string) string {
	words := []string{word(program)}
	for _, arg := range args {
		words = append(words, word(arg))
	}
	return strings.Join(words, " ")
}

// word quotes what a shell would not read as one plain word.
func word(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\n\"'`\\$&|;<>()*?[]{}#~!") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

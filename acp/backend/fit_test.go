package backend_test

import (
	"context"
	"encoding/json"
	"iter"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

// Four runtimes, as little of each as shows that the seam fits it.
var (
	_ func() backend.Backend = func() backend.Backend { return exploring{} }
	_ backend.Backend        = (*proxying)(nil)
	_ backend.Foreign        = (*proxying)(nil)
	_ backend.Backend        = modelling{}
	_ backend.Backend        = hosted{}
)

type base struct{}

func (base) Call(context.Context, string, backend.Raw) backend.Work { return nil }
func (base) Notify(context.Context, string, backend.Raw)            {}
func (base) Cancel(backend.Raw)                                     {}
func (base) Close(context.Context) error                            { return nil }

var endTurn = backend.Raw(`{"stopReason":"end_turn"}`)

// exploring answers from the workspace.
type exploring struct{ base }

func (exploring) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "explore"}, nil
}

func (exploring) Open(_ context.Context, _ backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	return exploringSession{ws: h.Workspace()}, backend.Opened{}, nil
}

type exploringSession struct {
	base
	ws *workspace.Workspace
}

func (s exploringSession) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	return func() (backend.Raw, error) {
		return endTurn, u.Update(ctx, backend.Update(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"found"}}}`))
	}
}

// proxying stands between the client and a child agent. The first half of each call queues the
// message to the child, so the child sees the client's order.
type proxying struct {
	child    *jsonrpc.Conn
	client   backend.Client
	mu       sync.Mutex
	sessions map[string]*proxySession // by the child's session id
}

func (p *proxying) Initialize(ctx context.Context, params backend.Raw, c backend.Client) (backend.Info, error) {
	p.client = c
	result, err := p.child.Call(ctx, "initialize", params)()
	return backend.Info{Kind: "proxy", Profile: "child", Initialize: result, MCP: backend.BackendConnects}, err
}

func (p *proxying) Open(ctx context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	result, err := p.child.Call(ctx, string(a.Cause), a.Params)()
	if err != nil {
		return nil, backend.Opened{}, err
	}
	var id struct{ SessionID string }
	if err := json.Unmarshal(result, &id); err != nil {
		return nil, backend.Opened{}, err
	}
	s := &proxySession{proxy: p, id: id.SessionID, host: h}
	p.mu.Lock()
	p.sessions[id.SessionID] = s
	p.mu.Unlock()
	return s, backend.Opened{Result: result}, h.SaveState(ctx, []byte(id.SessionID))
}

func (p *proxying) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return backend.Work(p.child.Call(ctx, method, params))
}

func (p *proxying) Notify(ctx context.Context, method string, params backend.Raw) {
	_ = p.child.Notify(ctx, method, params)
}
func (p *proxying) Close(context.Context) error { return nil }
func (p *proxying) Sessions(context.Context, *workspace.Dir) iter.Seq2[backend.ForeignSession, error] {
	return func(func(backend.ForeignSession, error) bool) {}
}
func (p *proxying) Delete(context.Context, []byte) error { return nil }
func (p *proxying) Key(state []byte) string              { return string(state) }

// Accept takes what the child sends: updates go to the turn or the host, requests to the client.
func (p *proxying) Accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	p.mu.Lock()
	s := p.sessions["from params"]
	p.mu.Unlock()
	switch {
	case s == nil:
		return jsonrpc.Work(p.client.Call(ctx, r.Method, r.Params))
	case r.Method == "session/update":
		_ = s.sink().Update(ctx, r.Params)
		return nil
	default:
		return jsonrpc.Work(s.host.Call(ctx, r.Method, r.Params))
	}
}

type proxySession struct {
	proxy *proxying
	id    string
	host  backend.Host
	mu    sync.Mutex
	turn  backend.Updates
}

func (s *proxySession) sink() backend.Updates {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil {
		return s.turn
	}
	return s.host
}

func (s *proxySession) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	s.mu.Lock()
	s.turn = u
	s.mu.Unlock()
	return backend.Work(s.proxy.child.Call(context.WithoutCancel(ctx), "session/prompt", params))
}

func (s *proxySession) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return backend.Work(s.proxy.child.Call(ctx, method, params))
}

func (s *proxySession) Notify(ctx context.Context, method string, params backend.Raw) {
	_ = s.proxy.child.Notify(ctx, method, params)
}
func (s *proxySession) Cancel(params backend.Raw) {
	_ = s.proxy.child.TryNotify("session/cancel", params)
}
func (s *proxySession) Close(context.Context) error { return nil }

// modelling asks a model: it reads the history once, and permission before it acts.
type modelling struct{ base }

func (modelling) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "model", Profile: "endpoint"}, nil
}

func (modelling) Open(_ context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	s := &modelSession{host: h}
	for u, err := range a.History {
		if err != nil {
			return nil, backend.Opened{}, err
		}
		s.context = append(s.context, u)
	}
	return s, backend.Opened{Result: backend.Raw(`{"modes":{"currentModeId":"ask","availableModes":[]}}`)}, nil
}

type modelSession struct {
	base
	host    backend.Host
	context []backend.Update
}

func (s *modelSession) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	return func() (backend.Raw, error) {
		if _, err := s.host.Call(ctx, "session/request_permission", backend.Raw(`{}`))(); err != nil {
			return nil, err
		}
		return endTurn, context.Cause(ctx)
	}
}

// hosted is a host program's own: modes and private methods.
type hosted struct{ base }

func (hosted) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "acme", Initialize: backend.Raw(`{"authMethods":[{"id":"acme","name":"Acme"}]}`)}, nil
}

func (hosted) Call(_ context.Context, method string, _ backend.Raw) backend.Work {
	if method != "authenticate" {
		return nil
	}
	return func() (backend.Raw, error) { return nil, nil }
}

func (hosted) Open(context.Context, backend.Activation, backend.Host) (backend.Session, backend.Opened, error) {
	return hostedSession{}, backend.Opened{}, nil
}

type hostedSession struct{ base }

func (hostedSession) Prompt(context.Context, backend.Raw, backend.Updates) backend.Work {
	return func() (backend.Raw, error) { return endTurn, nil }
}

package runtime_test

import (
	"context"
	"encoding/json"
	"iter"
	"sync"

	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
	"github.com/acp-agent/acp-agent/workspace"
)

// Four runtimes, as little of each as shows that the seam fits it.
var (
	_ runtime.Factory = func() runtime.Runtime { return exploring{} }
	_ runtime.Runtime = (*proxying)(nil)
	_ runtime.Foreign = (*proxying)(nil)
	_ runtime.Runtime = modelling{}
	_ runtime.Runtime = hosted{}
)

type base struct{}

func (base) Call(context.Context, string, runtime.Raw) runtime.Work { return nil }
func (base) Notify(context.Context, string, runtime.Raw)            {}
func (base) Cancel(runtime.Raw)                                     {}
func (base) Close(context.Context) error                            { return nil }

var endTurn = runtime.Raw(`{"stopReason":"end_turn"}`)

// exploring answers from the workspace.
type exploring struct{ base }

func (exploring) Initialize(context.Context, runtime.Raw, runtime.Client) (runtime.Info, error) {
	return runtime.Info{Kind: "explore"}, nil
}

func (exploring) Open(_ context.Context, _ runtime.Activation, h runtime.Host) (runtime.Session, runtime.Opened, error) {
	return exploringSession{ws: h.Workspace()}, runtime.Opened{}, nil
}

type exploringSession struct {
	base
	ws *workspace.Workspace
}

func (s exploringSession) Prompt(ctx context.Context, params runtime.Raw, u runtime.Updates) runtime.Work {
	return func() (runtime.Raw, error) {
		return endTurn, u.Update(ctx, runtime.Update(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"found"}}}`))
	}
}

// proxying stands between the client and a child agent. The first half of each call queues the
// message to the child, so the child sees the client's order.
type proxying struct {
	child    *wire.Conn
	client   runtime.Client
	mu       sync.Mutex
	sessions map[string]*proxySession // by the child's session id
}

func (p *proxying) Initialize(ctx context.Context, params runtime.Raw, c runtime.Client) (runtime.Info, error) {
	p.client = c
	result, err := p.child.Call(ctx, "initialize", params)()
	return runtime.Info{Kind: "proxy", Profile: "child", Initialize: result, MCP: runtime.RuntimeConnects}, err
}

func (p *proxying) Open(ctx context.Context, a runtime.Activation, h runtime.Host) (runtime.Session, runtime.Opened, error) {
	result, err := p.child.Call(ctx, string(a.Cause), a.Params)()
	if err != nil {
		return nil, runtime.Opened{}, err
	}
	var id struct{ SessionID string }
	if err := json.Unmarshal(result, &id); err != nil {
		return nil, runtime.Opened{}, err
	}
	s := &proxySession{proxy: p, id: id.SessionID, host: h}
	p.mu.Lock()
	p.sessions[id.SessionID] = s
	p.mu.Unlock()
	return s, runtime.Opened{Result: result}, h.SaveState(ctx, []byte(id.SessionID))
}

func (p *proxying) Call(ctx context.Context, method string, params runtime.Raw) runtime.Work {
	return runtime.Work(p.child.Call(ctx, method, params))
}

func (p *proxying) Notify(ctx context.Context, method string, params runtime.Raw) {
	_ = p.child.Notify(ctx, method, params)
}
func (p *proxying) Close(context.Context) error { return nil }
func (p *proxying) Sessions(context.Context, *workspace.Dir) iter.Seq2[runtime.ForeignSession, error] {
	return func(func(runtime.ForeignSession, error) bool) {}
}
func (p *proxying) Delete(context.Context, []byte) error { return nil }
func (p *proxying) Key(state []byte) string              { return string(state) }

// Accept takes what the child sends: updates go to the turn or the host, requests to the client.
func (p *proxying) Accept(ctx context.Context, r *wire.Request) wire.Work {
	p.mu.Lock()
	s := p.sessions["from params"]
	p.mu.Unlock()
	switch {
	case s == nil:
		return wire.Work(p.client.Call(ctx, r.Method, r.Params))
	case r.Method == "session/update":
		_ = s.sink().Update(ctx, r.Params)
		return nil
	default:
		return wire.Work(s.host.Call(ctx, r.Method, r.Params))
	}
}

type proxySession struct {
	proxy *proxying
	id    string
	host  runtime.Host
	mu    sync.Mutex
	turn  runtime.Updates
}

func (s *proxySession) sink() runtime.Updates {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil {
		return s.turn
	}
	return s.host
}

func (s *proxySession) Prompt(ctx context.Context, params runtime.Raw, u runtime.Updates) runtime.Work {
	s.mu.Lock()
	s.turn = u
	s.mu.Unlock()
	return runtime.Work(s.proxy.child.Call(context.WithoutCancel(ctx), "session/prompt", params))
}

func (s *proxySession) Call(ctx context.Context, method string, params runtime.Raw) runtime.Work {
	return runtime.Work(s.proxy.child.Call(ctx, method, params))
}

func (s *proxySession) Notify(ctx context.Context, method string, params runtime.Raw) {
	_ = s.proxy.child.Notify(ctx, method, params)
}
func (s *proxySession) Cancel(params runtime.Raw)   { _ = s.proxy.child.Post("session/cancel", params) }
func (s *proxySession) Close(context.Context) error { return nil }

// modelling asks a model: it reads the history once, and permission before it acts.
type modelling struct{ base }

func (modelling) Initialize(context.Context, runtime.Raw, runtime.Client) (runtime.Info, error) {
	return runtime.Info{Kind: "model", Profile: "endpoint"}, nil
}

func (modelling) Open(_ context.Context, a runtime.Activation, h runtime.Host) (runtime.Session, runtime.Opened, error) {
	s := &modelSession{host: h}
	for u, err := range a.History {
		if err != nil {
			return nil, runtime.Opened{}, err
		}
		s.context = append(s.context, u)
	}
	return s, runtime.Opened{Result: runtime.Raw(`{"modes":{"currentModeId":"ask","availableModes":[]}}`)}, nil
}

type modelSession struct {
	base
	host    runtime.Host
	context []runtime.Update
}

func (s *modelSession) Prompt(ctx context.Context, params runtime.Raw, u runtime.Updates) runtime.Work {
	return func() (runtime.Raw, error) {
		if _, err := s.host.Call(ctx, "session/request_permission", runtime.Raw(`{}`))(); err != nil {
			return nil, err
		}
		return endTurn, context.Cause(ctx)
	}
}

// hosted is a host program's own: modes and private methods.
type hosted struct{ base }

func (hosted) Initialize(context.Context, runtime.Raw, runtime.Client) (runtime.Info, error) {
	return runtime.Info{Kind: "acme", Initialize: runtime.Raw(`{"authMethods":[{"id":"acme","name":"Acme"}]}`)}, nil
}

func (hosted) Call(_ context.Context, method string, _ runtime.Raw) runtime.Work {
	if method != "authenticate" {
		return nil
	}
	return func() (runtime.Raw, error) { return nil, nil }
}

func (hosted) Open(context.Context, runtime.Activation, runtime.Host) (runtime.Session, runtime.Opened, error) {
	return hostedSession{}, runtime.Opened{}, nil
}

type hostedSession struct{ base }

func (hostedSession) Prompt(context.Context, runtime.Raw, runtime.Updates) runtime.Work {
	return func() (runtime.Raw, error) { return endTurn, nil }
}

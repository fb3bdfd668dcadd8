package proxy_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

// editor plays the adapter and the client behind it: it notes what reaches it, and answers requests.
type editor struct {
	backend.Host // for what a proxy does not ask

	t     *testing.T
	notes chan string

	mu      sync.Mutex
	answers map[string]backend.Work
	block   func(ctx context.Context, note string) error
	state   string
}

func newEditor(t *testing.T) *editor {
	return &editor{t: t, notes: make(chan string, 10_000), answers: make(map[string]backend.Work)}
}

func (e *editor) answer(method, result string) {
	e.answers[method] = func() (backend.Raw, error) { return backend.Raw(result), nil }
}

// note keeps what reached the editor, in order.
func (e *editor) note(ctx context.Context, n string) error {
	e.notes <- n
	e.mu.Lock()
	block := e.block
	e.mu.Unlock()
	if block != nil {
		return block(ctx, n)
	}
	return nil
}

// next waits for the next note.
func (e *editor) next() string {
	e.t.Helper()
	select {
	case n := <-e.notes:
		return n
	case <-time.After(patience):
		require.Fail(e.t, "nothing came")
		return ""
	}
}

// silent fails if there is a note that nobody took.
func (e *editor) silent() {
	e.t.Helper()
	select {
	case n := <-e.notes:
		require.Fail(e.t, "unexpected: "+n)
	default:
	}
}

func (e *editor) call(ctx context.Context, to, method string, params backend.Raw) backend.Work {
	err := e.note(ctx, to+" call "+method+" "+string(params))
	e.mu.Lock()
	defer e.mu.Unlock()
	answer := e.answers[method]
	return func() (backend.Raw, error) {
		switch {
		case err != nil:
			return nil, err
		case answer == nil:
			return nil, jsonrpc.MethodNotFound(method)
		}
		return answer()
	}
}

// Call implements [runtime.Client] outside of sessions.
func (e *editor) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return e.call(ctx, "client", method, params)
}

// Notify implements [runtime.Client] outside of sessions.
func (e *editor) Notify(ctx context.Context, method string, params backend.Raw) error {
	return e.note(ctx, "client notify "+method+" "+string(params))
}

// host is the editor as a session's host.
type host struct{ *editor }

func (h host) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return h.call(ctx, "host", method, params)
}

func (h host) Notify(ctx context.Context, method string, params backend.Raw) error {
	return h.note(ctx, "host notify "+method+" "+string(params))
}

func (h host) Update(ctx context.Context, u backend.Update) error {
	return h.note(ctx, "host update "+string(u))
}

func (h host) Replay(ctx context.Context, u backend.Update) error {
	return h.note(ctx, "host replay "+string(u))
}

func (h host) Workspace() *workspace.Workspace { return nil }

func (h host) Catalog() *discovery.Catalog { return nil }

func (h host) SaveState(_ context.Context, state []byte) error {
	h.state = string(state)
	return nil
}

// turn is the editor as what a turn's updates go to.
type turn struct{ *editor }

func (u turn) Update(ctx context.Context, update backend.Update) error {
	return u.note(ctx, "turn update "+string(update))
}

package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// router gives each message of one connection to the session of its era. The SDK decides by the session whether it
// asks by a request or within a result, and the two eras may be mixed on a connection: a session for each keeps
// requests from those that must not be sent any (M7).
type router struct{ old, now *port }

// deliver hands a message on. It blocks while the session does not take it.
func (r router) deliver(m jsonrpc.Message) {
	to := r.old
	if request, ok := m.(*jsonrpc.Request); ok && r.isNow(request) {
		to = r.now
	}
	to.deliver(m)
}

// isNow reports whether a request belongs to the modern era: it says so itself. A cancellation belongs where its request
// went.
func (r router) isNow(request *jsonrpc.Request) bool {
	var params struct {
		Meta      map[string]json.RawMessage `json:"_meta"`
		RequestID json.RawMessage            `json:"requestId"`
	}
	if json.Unmarshal(request.Params, &params) != nil {
		return false
	}
	if params.Meta[mcp.MetaKeyProtocolVersion] != nil {
		return true
	}
	return request.Method == "notifications/cancelled" && r.now.has(params.RequestID)
}

// port is a session's side of a connection that it shares. It is its own transport.
type port struct {
	lines    *lines
	limit    int // of pending
	incoming chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once

	mu      sync.Mutex
	pending map[string]int // requests that are not answered, by id
	idling  chan struct{}  // closed while there are none
}

func newPort(l *lines, limit int) *port {
	p := &port{
		lines: l, limit: limit, incoming: make(chan jsonrpc.Message), closed: make(chan struct{}),
		pending: map[string]int{}, idling: make(chan struct{}),
	}
	close(p.idling)
	return p
}

// deliver gives the session a message.
func (p *port) deliver(m jsonrpc.Message) {
	request, ok := m.(*jsonrpc.Request)
	counted := ok && request.IsCall()
	if counted && !p.count(request.ID, 1) {
		p.lines.tooMany(request.ID, p.limit)
		return
	}
	select {
	case p.incoming <- m:
	case <-p.closed:
		if counted {
			p.count(request.ID, -1)
		}
	}
}

// count keeps the number of unanswered requests. It refuses one that is too many.
func (p *port) count(id jsonrpc.ID, by int) bool {
	key, err := json.Marshal(id.Raw())
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.pending)
	if by > 0 && before >= p.limit {
		return false
	}
	if p.pending[string(key)] += by; p.pending[string(key)] <= 0 {
		delete(p.pending, string(key))
	}
	switch after := len(p.pending); {
	case before == 0 && after > 0:
		p.idling = make(chan struct{})
	case before > 0 && after == 0:
		close(p.idling)
	}
	return true
}

// has reports whether a request with this id, as JSON, is unanswered.
func (p *port) has(id json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending[string(id)] > 0
}

// idle is closed when no request is unanswered.
func (p *port) idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idling
}

// Connect implements [mcp.Transport].
func (p *port) Connect(context.Context) (mcp.Connection, error) { return p, nil }

// SessionID implements [mcp.Connection].
func (p *port) SessionID() string { return "" }

// Read implements [mcp.Connection].
func (p *port) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.incoming:
		return m, nil
	case <-p.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection].
func (p *port) Write(_ context.Context, m jsonrpc.Message) error {
	message, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	err = p.lines.write(message)
	if response, ok := m.(*jsonrpc.Response); ok {
		p.count(response.ID, -1)
	}
	return err
}

// Close implements [mcp.Connection].
func (p *port) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
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

// isNow reports whether a request belongs to the modern era: the revision that it names does. A cancellation belongs where
// its request went.
func (r router) isNow(request *jsonrpc.Request) bool {
	var params struct {
		Meta      map[string]json.RawMessage `json:"_meta"`
		RequestID json.RawMessage            `json:"requestId"`
	}
	if json.Unmarshal(request.Params, &params) != nil {
		return false
	}
	var revision string
	if named := params.Meta[mcp.MetaKeyProtocolVersion]; named != nil && (json.Unmarshal(named, &revision) != nil || revision >= modern) {
		return true
	}
	return request.Method == "notifications/cancelled" && r.now.has(params.RequestID)
}

// port is a session's side of a connection that it shares. It is its own transport.
type port struct {
	lines    *lines
	limit    int // of busy
	incoming chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once

	mu      sync.Mutex
	pending map[string]bool // requests that have no answer, by id
	busy    int             // requests that have none, or one that is not read
	idling  chan struct{}   // closed while there are none
}

func newPort(l *lines, limit int) *port {
	p := &port{
		lines: l, limit: limit, incoming: make(chan jsonrpc.Message), closed: make(chan struct{}),
		pending: map[string]bool{}, idling: make(chan struct{}),
	}
	close(p.idling)
	return p
}

// deliver gives the session a message.
func (p *port) deliver(m jsonrpc.Message) {
	request, ok := m.(*jsonrpc.Request)
	counted := ok && request.IsCall()
	if counted && !p.admit(request.ID) {
		return
	}
	select {
	case p.incoming <- m:
	case <-p.closed:
		if counted {
			p.answering(request.ID)
			p.answered()
		}
	}
}

// admit notes a request that is to be answered. One that is too many is refused, and one whose id is that of another, which
// the SDK would leave without an answer.
func (p *port) admit(id jsonrpc.ID) bool {
	key := keyOf(id)
	p.mu.Lock()
	full, twice := p.busy >= p.limit, p.pending[key]
	if !full && !twice {
		p.pending[key] = true
		if p.busy++; p.busy == 1 {
			p.idling = make(chan struct{})
		}
	}
	p.mu.Unlock()
	switch {
	case twice: // an answer with the id would be taken for that of the other
		p.lines.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("the id %s is in use: the request that has it is not answered yet", shorten(key)))
	case full:
		p.lines.tooMany(id, p.limit)
	}
	return !full && !twice
}

// answering notes that a request has its answer. The client may use the id again as soon as it reads that.
func (p *port) answering(id jsonrpc.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, keyOf(id))
}

// answered notes that the client has read an answer.
func (p *port) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy--; p.busy == 0 {
		close(p.idling)
	}
}

// keyOf is an id as JSON.
func keyOf(id jsonrpc.ID) string {
	key, err := json.Marshal(id.Raw())
	if err != nil {
		return "" // ids are strings and integers
	}
	return string(key)
}

// has reports whether a request with this id, as JSON, is unanswered.
func (p *port) has(id json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending[string(id)]
}

// idle is closed when all requests are answered, and the answers read.
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
	if response, ok := m.(*jsonrpc.Response); ok {
		p.answering(response.ID)
		defer p.answered()
	}
	message, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return p.lines.write(message)
}

// Close implements [mcp.Connection].
func (p *port) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

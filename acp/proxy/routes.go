package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

const updateMethod = "session/update"

// message is a request or notification of the child, without its session's id.
type message struct {
	ctx    context.Context
	method string
	params backend.Raw
	// answer takes the second half of a request, once; nil for a notification.
	answer chan<- backend.Work
}

// accept takes what the child sends, on the read loop: while the client does not take an update, nothing
// more is read.
func (a *agent) accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	id, params, named := sessionOf(r.Params)
	if !named {
		return a.pass(ctx, r)
	}
	m := message{ctx: ctx, method: r.Method, params: params}
	if r.IsNotification() {
		a.route(id, m)
		return nil
	}
	answer := make(chan backend.Work, 1)
	m.answer = answer
	a.route(id, m)
	return func() (json.RawMessage, error) {
		select {
		case work := <-answer:
			return work()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// sessionOf takes the session's id off params. It reports whether there was one; if not, params are to
// be passed on as they are.
func sessionOf(params json.RawMessage) (id string, rest json.RawMessage, named bool) {
	value, rest, err := strictjson.Take(params, "sessionId")
	if err != nil || value == nil || json.Unmarshal(value, &id) != nil || string(value) == "null" {
		return "", nil, false
	}
	return id, rest, true
}

// pass passes on what names no session.
func (a *agent) pass(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	a.behind.wait(ctx)
	if !r.IsNotification() {
		return jsonrpc.Work(a.client.Call(ctx, r.Method, r.Params))
	}
	if err := a.client.Notify(ctx, r.Method, r.Params); err != nil {
		a.dropped(r.Method, err)
	}
	return nil
}

// route gives m to its session, or holds it, or refuses it.
func (a *agent) route(id string, m message) {
	l, err := a.routes.find(id, m)
	switch {
	case err != nil:
		a.refuse(m, err)
	case l != nil:
		l.deliver(m)
	}
}

// refuse says that m reaches nobody.
func (a *agent) refuse(m message, err error) {
	if m.answer != nil {
		m.answer <- failed(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "sessionId: %v", err))
		return
	}
	a.dropped(m.method, err)
}

// dropped logs a notification that reaches nobody. What comes late for a session that has ended is no
// surprise.
func (a *agent) dropped(method string, err error) {
	if errors.Is(err, backend.ErrClosed) || errors.Is(err, errUnknownSession) || errors.Is(err, backend.ErrTurnOver) {
		a.log.Debug("a notification of the agent came too late", "method", method, "error", err)
		return
	}
	a.log.Warn("a notification of the agent was not passed on", "method", method, "error", err)
}

// routes finds the session that a child's message is for, by the child's id. While a session is being made
// the child may use an id that we do not know yet; what comes for it is held.
type routes struct {
	maxHeld, maxBytes int

	mu      sync.Mutex
	links   map[string]*link
	opening int                  // sessions being made
	held    map[string][]message // by the id that nobody knows yet
	count   int                  // of held messages
	bytes   int                  // of their params
}

func newRoutes(maxHeld, maxBytes int) *routes {
	return &routes{
		maxHeld:  maxHeld,
		maxBytes: maxBytes,
		links:    make(map[string]*link),
		held:     make(map[string][]message),
	}
}

var (
	errUnknownSession = errors.New("no session has this id")
	errTooManyHeld    = errors.New("too many messages for a session that the agent has not announced yet")
	errSameID         = errors.New("the agent gave a new session the id of another one")
)

// find returns the session of an id. If there is none, m is held if it can still become one, or the error
// says why not.
func (r *routes) find(id string, m message) (*link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.links[id]; l != nil {
		return l, nil
	}
	switch {
	case r.opening == 0:
		return nil, errUnknownSession
	case r.count == r.maxHeld || r.bytes+len(m.params) > r.maxBytes:
		return nil, errTooManyHeld
	}
	r.held[id] = append(r.held[id], m)
	r.count++
	r.bytes += len(m.params)
	return nil, nil
}

// begin says that a session is being made.
func (r *routes) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opening++
}

// end undoes begin. With the last one, what is still held has no session and is returned.
func (r *routes) end() (orphans []message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opening--; r.opening > 0 {
		return nil
	}
	for _, held := range r.held {
		orphans = append(orphans, held...)
	}
	clear(r.held)
	r.count, r.bytes = 0, 0
	return orphans
}

// attach gives an id its session, and returns what was held for it. The caller holds the session's order.
func (r *routes) attach(id string, l *link) (held []message, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links[id] != nil {
		return nil, errSameID
	}
	r.links[id] = l
	held = r.held[id]
	delete(r.held, id)
	r.count -= len(held)
	for _, m := range held {
		r.bytes -= len(m.params)
	}
	return held, nil
}

// detach takes the session's id from it.
func (r *routes) detach(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, id)
}

// barrier keeps what the child sends behind a response from reaching the client before that response (P6).
type barrier struct {
	mu      sync.Mutex
	waiting []<-chan struct{}
}

// add is called on the read loop when a response was read. answered is closed once the client has it; nil
// if nobody says.
func (b *barrier) add(answered <-chan struct{}) {
	if answered == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, answered)
}

// wait waits until the client has all responses that were read so far, or ctx ends.
func (b *barrier) wait(ctx context.Context) {
	b.mu.Lock()
	waiting := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	for _, answered := range waiting {
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
	}
}

package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// message is a request or notification from the child.
type message struct {
	ctx    context.Context
	id     string // of the session
	method string
	params backend.Raw         // without the session id
	answer chan<- backend.Work // receives the Work of a request, once; nil for a notification
}

// recipient is whom a message is about.
type recipient struct {
	session  *childSession
	subagent *subagent // nil for the session itself
}

var (
	errUnknownSession = errors.New("no session has this id")
	errTooManyHeld    = errors.New(
		"too many messages for a session that the agent has not announced yet")
	errDuplicateID = errors.New("the agent gave a new session the id of an existing one")
)

// router gives each message of a child to the session or subagent that it names. While the child
// creates a session, messages with unknown ids are held: the child may use the id before it has
// answered. Messages are delivered on the read loop, so while the client does not take an update,
// nothing more is read.
type router struct {
	client  backend.Client // gets the messages that name no session
	log     *slog.Logger
	barrier barrier // for the messages that name no session
	limits  limits

	mu       sync.Mutex
	routes   map[string]recipient
	creating int       // sessions that are being created
	held     []message // for unknown ids, in order
	bytes    int       // of their params
}

// accept handles a message of the child. It runs on the read loop.
func (r *router) accept(ctx context.Context, request *jsonrpc.Request) jsonrpc.Work {
	if request.Method == protocol.Initialize { // a program that repeats its input, such as cat
		return nil
	}
	id, rest, err := protocol.TakeSessionID(request.Params)
	if err != nil || id == "" {
		return r.passSessionless(ctx, request)
	}
	m := message{ctx: ctx, id: id, method: request.Method, params: rest()}
	if request.IsNotification() {
		r.route(m)
		return nil
	}
	answer := make(chan backend.Work, 1)
	m.answer = answer
	r.route(m)
	return func() (json.RawMessage, error) {
		select {
		case work := <-answer:
			return work()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// passSessionless passes on a message that names no session.
func (r *router) passSessionless(ctx context.Context, request *jsonrpc.Request) jsonrpc.Work {
	r.barrier.wait(ctx)
	if !request.IsNotification() {
		return r.client.Call(ctx, request.Method, request.Params)
	}
	if err := r.client.Notify(ctx, request.Method, request.Params); err != nil {
		r.logDropped(request.Method, err)
	}
	return nil
}

// noteTooLong sends the user a note in place of an update that is too long to be read. Its session
// id usually comes first.
func (r *router) noteTooLong(ctx context.Context, beginning []byte) {
	method := strictjson.FindText(beginning, "method")
	id := strictjson.FindText(beginning, "params", protocol.SessionID)
	if method != protocol.SessionUpdate || id == "" {
		return // it is logged
	}
	note := backend.Note("\n\nThe agent sent an update that is longer than " +
		text.Size(int64(r.limits.MaxLine)) + ". It is left out.\n\n")
	r.route(message{ctx: ctx, id: id, method: method, params: note.Raw})
}

// route delivers m to its recipient, holds it for a session that is being created, or rejects it.
// It runs on the read loop.
func (r *router) route(m message) {
	to, err := r.findOrHold(m)
	switch {
	case err != nil:
		r.reject(m, err)
	case to.session != nil:
		to.session.deliver(m, to.subagent)
	}
}

// release delivers the messages that are held for an id, which has a recipient now. It runs on the
// read loop.
func (r *router) release(id string) {
	for _, m := range r.takeHeld(id) {
		r.route(m)
	}
}

// reject answers a request with an error, and logs a notification.
func (r *router) reject(m message, err error) {
	if m.answer != nil {
		m.answer <- jsonrpc.Fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "sessionId: %v", err))
		return
	}
	r.logDropped(m.method, err)
}

// logDropped logs a notification that was not passed on. Some always arrive after their session has
// ended.
func (r *router) logDropped(method string, err error) {
	if errors.Is(err, backend.ErrClosed) || errors.Is(err, errUnknownSession) ||
		errors.Is(err, backend.ErrTurnOver) || errors.Is(err, backend.ErrFenced) {
		r.log.Debug("a notification of the agent came too late", "method", method, "error", err)
		return
	}
	r.log.Warn("cannot pass on a notification of the agent", "method", method, "error", err)
}

// findOrHold returns the recipient of m. If its session may still be created, it holds m and
// returns none; otherwise it returns an error.
func (r *router) findOrHold(m message) (recipient, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, known := r.routes[m.id]
	switch {
	case known:
		return to, nil
	case r.creating == 0:
		return to, errUnknownSession
	case len(r.held) == r.limits.MaxHeld || r.bytes+len(m.params) > r.limits.MaxHeldBytes:
		return to, errTooManyHeld
	}
	r.held = append(r.held, m)
	r.bytes += len(m.params)
	return to, nil
}

// takeHeld returns the messages held for an id, and holds them no longer.
func (r *router) takeHeld(id string) (taken []message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = slices.DeleteFunc(r.held, func(h message) bool {
		if h.id == id {
			taken = append(taken, h)
			r.bytes -= len(h.params)
		}
		return h.id == id
	})
	return taken
}

// add routes an id to a recipient, unless it is routed already.
func (r *router) add(id string, to recipient) (added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.routes[id]; taken {
		return false
	}
	r.routes[id] = to
	return true
}

// find returns the recipient with an id, or none.
func (r *router) find(id string) recipient {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[id]
}

// remove removes the routes of a session and of its subagents.
func (r *router) remove(cs *childSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.routes, func(_ string, to recipient) bool { return to.session == cs })
}

// hasRunningSubagent reports whether a subagent is running.
func (r *router) hasRunningSubagent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, to := range r.routes {
		if to.subagent != nil && to.subagent.running.Load() {
			return true
		}
	}
	return false
}

// begin starts holding messages, because a session is being created.
func (r *router) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.creating++
}

// end undoes begin. The last call rejects the messages that are still held.
func (r *router) end() {
	r.mu.Lock()
	var orphans []message
	if r.creating--; r.creating == 0 {
		orphans, r.held, r.bytes = r.held, nil, 0
	}
	r.mu.Unlock()
	for _, m := range orphans {
		r.reject(m, errUnknownSession)
	}
}

// barrier makes sure that messages which the child sends after a response reach the client after
// that response. It is used only on the read loop.
type barrier struct{ pending []<-chan struct{} }

// add is called for each response. answered is closed once the client has been answered; nil is
// ignored.
func (b *barrier) add(answered <-chan struct{}) {
	if answered != nil {
		b.pending = append(b.pending, answered)
	}
}

// wait waits until the client has all responses that were read so far, or ctx ends.
func (b *barrier) wait(ctx context.Context) {
	pending := b.pending
	b.pending = nil
	for _, answered := range pending {
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
	}
}

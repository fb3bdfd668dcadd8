package child

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

// Recipient gets the messages of a child that name an id: it is a session, or works for one.
type Recipient interface {
	// Deliver handles a message. It returns what answers a request, or an error, with which a
	// request is answered; that of a notification is logged. It runs on the read loop.
	Deliver(m Message) (backend.Work, error)
	// IsRunning reports whether it has something to do although no request waits for that.
	IsRunning() bool
}

// Message is a request or notification from a child.
type Message struct {
	Ctx    context.Context
	Method string
	Params backend.Raw // without the session id

	id     string              // of the session
	answer chan<- backend.Work // receives the Work of a request, once; nil for a notification
}

// IsRequest reports whether the message is a request.
func (m Message) IsRequest() bool { return m.answer != nil }

// ErrUnknownSession is the error of a message that names no session that there is.
var ErrUnknownSession error = jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
	"sessionId: no session has this id")

var errTooManyHeld = jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
	"sessionId: too many messages for a session that the agent has not announced yet")

// Router gives each message of a child to the recipient that it names. While the child creates a
// session, messages with unknown ids are held: the child may use the id before it has answered.
// Messages are delivered on the read loop, so while the client does not take an update, nothing
// more is read.
type Router struct {
	client  backend.Client // gets the messages that name no session
	log     *slog.Logger
	barrier Barrier // for the messages that name no session
	limits  Limits

	mu       sync.Mutex
	routes   map[string]Recipient
	creating int       // sessions that are being created
	held     []Message // for unknown ids, in order
	bytes    int       // of their params
}

// accept handles a message of the child. It runs on the read loop.
func (r *Router) accept(ctx context.Context, request *jsonrpc.Request) jsonrpc.Work {
	if request.Method == protocol.Initialize { // a program that repeats its input, such as cat
		return nil
	}
	id, rest, err := protocol.TakeSessionID(request.Params)
	if err != nil || id == "" {
		return r.passSessionless(ctx, request)
	}
	m := Message{Ctx: ctx, Method: request.Method, Params: rest(), id: id}
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
func (r *Router) passSessionless(ctx context.Context, request *jsonrpc.Request) jsonrpc.Work {
	r.barrier.Wait(ctx)
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
func (r *Router) noteTooLong(ctx context.Context, beginning []byte) {
	method := strictjson.FindText(beginning, "method")
	id := strictjson.FindText(beginning, "params", protocol.SessionID)
	if method != protocol.SessionUpdate || id == "" {
		return // it is logged
	}
	note := backend.Note("\n\nThe agent sent an update that is longer than " +
		text.Size(int64(r.limits.MaxLine)) + ". It is left out.\n\n")
	r.route(Message{Ctx: ctx, Method: method, Params: note.Raw, id: id})
}

// route delivers m to its recipient, holds it for a session that is being created, or rejects it.
// It runs on the read loop.
func (r *Router) route(m Message) {
	to, err := r.findOrHold(m)
	if to != nil {
		work, err := to.Deliver(m)
		r.finish(m, work, err)
	} else if err != nil {
		r.finish(m, nil, err)
	}
}

// finish answers a request with work or an error, and logs the error of a notification.
func (r *Router) finish(m Message, work backend.Work, err error) {
	if m.IsRequest() {
		if err != nil || work == nil {
			work = jsonrpc.Fail(err)
		}
		m.answer <- work
	} else if err != nil {
		r.logDropped(m.Method, err)
	}
}

// logDropped logs a notification that was not passed on. Some always arrive after their session has
// ended.
func (r *Router) logDropped(method string, err error) {
	if errors.Is(err, backend.ErrClosed) || errors.Is(err, ErrUnknownSession) ||
		errors.Is(err, backend.ErrTurnOver) || errors.Is(err, backend.ErrFenced) {
		r.log.Debug("a notification of the agent came too late", "method", method, "error", err)
		return
	}
	r.log.Warn("cannot pass on a notification of the agent", "method", method, "error", err)
}

// findOrHold returns the recipient of m. If its session may still be created, it holds m and
// returns none; otherwise it returns an error.
func (r *Router) findOrHold(m Message) (Recipient, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, known := r.routes[m.id]
	switch {
	case known:
		return to, nil
	case r.creating == 0:
		return nil, ErrUnknownSession
	case len(r.held) == r.limits.MaxHeld || r.bytes+len(m.Params) > r.limits.MaxHeldBytes:
		return nil, errTooManyHeld
	}
	r.held = append(r.held, m)
	r.bytes += len(m.Params)
	return nil, nil
}

// DeliverHeld delivers the messages that are held for an id, which has a recipient now. It runs on
// the read loop.
func (r *Router) DeliverHeld(id string) {
	for _, m := range r.takeHeld(id) {
		r.route(m)
	}
}

// takeHeld returns the messages held for an id, and holds them no longer.
func (r *Router) takeHeld(id string) (taken []Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = slices.DeleteFunc(r.held, func(h Message) bool {
		if h.id == id {
			taken = append(taken, h)
			r.bytes -= len(h.Params)
		}
		return h.id == id
	})
	return taken
}

// Add routes an id to a recipient, unless it is routed already.
func (r *Router) Add(id string, to Recipient) (added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.routes[id]; taken {
		return false
	}
	r.routes[id] = to
	return true
}

// Find returns the recipient with an id, or nil.
func (r *Router) Find(id string) Recipient {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[id]
}

// Remove removes the routes to recipients for which gone returns true.
func (r *Router) Remove(gone func(Recipient) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.routes, func(_ string, to Recipient) bool { return gone(to) })
}

// hasRunning reports whether a recipient is running.
func (r *Router) hasRunning() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, to := range r.routes {
		if to.IsRunning() {
			return true
		}
	}
	return false
}

// Hold starts holding messages, because a session is being created. They are held until end is
// called. The last such call rejects the messages that are still held.
func (r *Router) Hold() (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.creating++
	return r.end
}

func (r *Router) end() {
	r.mu.Lock()
	var orphans []Message
	if r.creating--; r.creating == 0 {
		orphans, r.held, r.bytes = r.held, nil, 0
	}
	r.mu.Unlock()
	for _, m := range orphans {
		r.finish(m, nil, ErrUnknownSession)
	}
}

// Barrier makes sure that messages which the child sends after a response reach the client after
// that response. It is used only on the read loop.
type Barrier struct{ pending []<-chan struct{} }

// Add is called for each response. answered is closed once the client has been answered; nil is
// ignored.
func (b *Barrier) Add(answered <-chan struct{}) {
	if answered != nil {
		b.pending = append(b.pending, answered)
	}
}

// Wait waits until the client has all responses that were read so far, or ctx ends.
func (b *Barrier) Wait(ctx context.Context) {
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

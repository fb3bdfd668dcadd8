package proxy

import (
	"context"
	"encoding/json"
	"errors"
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
	from   *subagent           // nil for a message about the session itself
	answer chan<- backend.Work // receives the Work of a request, once; nil for a notification
}

// serveMessage is accept, and keeps the child from being stopped as idle.
func (c *child) serveMessage(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if !c.pin() { // it is about to end
		return c.accept(ctx, r)
	}
	work := c.accept(ctx, r)
	if work == nil {
		c.unpin()
		return nil
	}
	return c.whilePinned(work)
}

// accept handles a message of the child. It runs on the read loop, so while the client does not
// take an update, nothing more is read.
func (c *child) accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if r.Method == protocol.Initialize { // a program that repeats its input, such as cat
		return nil
	}
	id, rest, err := protocol.TakeSessionID(r.Params)
	if err != nil || id == "" {
		return c.passSessionless(ctx, r)
	}
	m := message{ctx: ctx, id: id, method: r.Method, params: rest()}
	if r.IsNotification() {
		c.route(m)
		return nil
	}
	answer := make(chan backend.Work, 1)
	m.answer = answer
	c.route(m)
	return func() (json.RawMessage, error) {
		select {
		case work := <-answer:
			return work()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// maxStray limits how many lines of a child that are no messages are logged with their text.
const maxStray = 5

// reportInvalid logs a line that is not a message. It tells the user about an update that is too
// long.
func (c *child) reportInvalid(ctx context.Context, line []byte, tooLong bool) {
	if tooLong {
		c.reportTooLong(ctx, line)
		return
	}
	said := text.Line(text.Plain(c.proxy.secrets.Text(string(line))), maxTitle)
	c.firstStray.CompareAndSwap(nil, &said)
	if c.stray.Add(1) <= maxStray {
		c.log.Warn("the agent wrote a line to stdout that is not a message", "line", said)
	}
}

// reportTooLong sends the user a note in place of an update that is too long to be read. Its
// session id usually comes first.
func (c *child) reportTooLong(ctx context.Context, beginning []byte) {
	method := strictjson.FindText(beginning, "method")
	id := strictjson.FindText(beginning, "params", protocol.SessionID)
	if method != protocol.SessionUpdate || id == "" {
		return // it is logged
	}
	note := backend.Note("\n\nThe agent sent an update that is longer than " +
		text.Size(int64(c.limits.MaxLine)) + ". It is left out.\n\n")
	c.route(message{ctx: ctx, id: id, method: method, params: note.Raw})
}

// passSessionless passes on a message that names no session.
func (c *child) passSessionless(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	c.barrier.wait(ctx)
	if !r.IsNotification() {
		return c.proxy.client.Call(ctx, r.Method, r.Params)
	}
	if err := c.proxy.client.Notify(ctx, r.Method, r.Params); err != nil {
		c.logDropped(r.Method, err)
	}
	return nil
}

// route delivers m to its session, holds it for a session that is being opened, or rejects it.
func (c *child) route(m message) {
	to, err := c.router.findOrHold(m)
	m.from = to.subagent
	switch {
	case err != nil:
		c.reject(m, err)
	case to.session != nil:
		to.session.deliver(m)
	}
}

// reject answers a request with an error, and logs a notification.
func (c *child) reject(m message, err error) {
	if m.answer != nil {
		m.answer <- jsonrpc.Fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "sessionId: %v", err))
		return
	}
	c.logDropped(m.method, err)
}

// logDropped logs a notification that was not passed on. Some always arrive after their session has
// ended.
func (c *child) logDropped(method string, err error) {
	if errors.Is(err, backend.ErrClosed) || errors.Is(err, errUnknownSession) ||
		errors.Is(err, backend.ErrTurnOver) || errors.Is(err, backend.ErrFenced) {
		c.log.Debug("a notification of the agent came too late", "method", method, "error", err)
		return
	}
	c.log.Warn("cannot pass on a notification of the agent", "method", method, "error", err)
}

var (
	errUnknownSession = errors.New("no session has this id")
	errTooManyHeld    = errors.New(
		"too many messages for a session that the agent has not announced yet")
	errDuplicateID = errors.New("the agent gave a new session the id of an existing one")
)

// recipient is whom a message is about.
type recipient struct {
	session  *childSession
	subagent *subagent // nil for the session itself
}

// router finds whom a message is about by the child's session id. While the child creates a
// session, messages with unknown ids are held: the child may use the id before it has answered.
type router struct {
	maxHeld, maxBytes int

	mu       sync.Mutex
	routes   map[string]recipient
	creating int       // sessions that are being created
	held     []message // for unknown ids, in order
	bytes    int       // of their params
}

func newRouter(maxHeld, maxBytes int) *router {
	return &router{maxHeld: maxHeld, maxBytes: maxBytes, routes: make(map[string]recipient)}
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
	case len(r.held) == r.maxHeld || r.bytes+len(m.params) > r.maxBytes:
		return to, errTooManyHeld
	}
	r.held = append(r.held, m)
	r.bytes += len(m.params)
	return to, nil
}

// announce routes an id to the subagent sub, unless it is routed to that already. It returns the
// one it is routed to, and the messages held for it. The caller must hold the session's order.
func (r *router) announce(sub *subagent, max int) (known *subagent, held []message, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, taken := r.routes[sub.id]
	known = to.subagent
	switch {
	case known != nil && (known.session != sub.session || known.parent != sub.parent):
		return nil, nil, errForeignSubagent
	case known != nil:
		return known, nil, nil
	case sub.id == "" || len(sub.id) > maxSubagentID || taken:
		return nil, nil, errSubagentID
	case len(sub.session.subagents) == max:
		return nil, nil, errManySubagents
	}
	sub.session.subagents = append(sub.session.subagents, sub)
	r.routes[sub.id] = recipient{sub.session, sub}
	held = r.takeHeldLocked(sub.id)
	for i := range held {
		held[i].from = sub
	}
	return sub, held, nil
}

// find returns the recipient with an id, or none.
func (r *router) find(id string) recipient {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[id]
}

// subagents returns the subagents of a session, in the order in which they were announced.
func (r *router) subagents(cs *childSession) []*subagent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(cs.subagents)
}

// working reports whether a subagent is running.
func (r *router) working() bool {
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

// end undoes begin. The last call returns the messages that are still held.
func (r *router) end() (orphans []message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.creating--; r.creating == 0 {
		orphans, r.held, r.bytes = r.held, nil, 0
	}
	return orphans
}

// attach routes an id to s and returns the messages held for it. One that is outdated loses its
// route. The caller must hold s.order.
func (r *router) attach(id string, s *childSession) (held []message, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, taken := r.routes[id]
	if taken && (to.subagent != nil || !to.session.outdated.Load()) {
		return nil, errDuplicateID
	}
	r.routes[id] = recipient{session: s}
	return r.takeHeldLocked(id), nil
}

// takeHeldLocked returns the messages held for an id, and holds them no longer.
func (r *router) takeHeldLocked(id string) (taken []message) {
	r.held = slices.DeleteFunc(r.held, func(h message) bool {
		if h.id == id {
			taken = append(taken, h)
			r.bytes -= len(h.params)
		}
		return h.id == id
	})
	return taken
}

// detach removes the routes of a session and of its subagents.
func (r *router) detach(cs *childSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.routes, func(_ string, to recipient) bool { return to.session == cs })
}

// barrier makes sure that messages which the child sends after a response reach the client after
// that response.
type barrier struct {
	mu      sync.Mutex
	pending []<-chan struct{}
}

// add is called on the read loop for each response. answered is closed once the client has been
// answered; nil is ignored.
func (b *barrier) add(answered <-chan struct{}) {
	if answered == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, answered)
}

// wait waits until the client has all responses that were read so far, or ctx ends.
func (b *barrier) wait(ctx context.Context) {
	b.mu.Lock()
	pending := b.pending
	b.pending = nil
	b.mu.Unlock()
	for _, answered := range pending {
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
	}
}

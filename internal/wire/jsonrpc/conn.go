package jsonrpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Options configure a connection. The zero value is usable.
type Options struct {
	// MaxQueue is the number of queued output bytes at which Call and TryNotify fail and responses
	// wait. Notify waits at 1/256 of it, so that a stream of notifications leaves room for messages
	// that cannot wait, and does not run far ahead of a slow peer. The message that reaches the
	// limit may exceed it. Default 4 MiB.
	MaxQueue int
	// Grace is how long Serve waits for unanswered requests after the input has ended, and for the
	// peer to take the output. Default 2 s.
	Grace time.Duration
	// OpaqueParams accepts any well-formed params. By default, duplicate names anywhere in params
	// are rejected with -32602.
	OpaqueParams bool
	// Tap, if set, is called with every message except blank ones and those over the limit. If it
	// panics, that is logged, and it is not called again.
	Tap Tap
	// Invalid, if set, is called on the read loop with each line that is not a message, or with the
	// beginning of one over the limit, unless it is known to be a request or a response. It must
	// not keep or change line.
	Invalid func(ctx context.Context, line []byte, tooLong bool)
	// Budget, if set, limits the bytes of unanswered requests, and of responses that wait, together
	// with other connections.
	Budget Budget
	// Logger receives problems that cannot be reported to the peer. Message content is never
	// logged. Default: discard.
	Logger *slog.Logger

	limits limits
}

// limits are the bounds that only tests change.
type limits struct {
	// unanswered is how many requests, and notifications with Work, run at once. Reading stops at
	// the next one.
	unanswered int
	// bytes bounds the size of the methods and params of unanswered requests, together with the
	// responses that wait while the output is full. A request over the bound is rejected rather
	// than delayed, because the running ones may be waiting for a message that comes after it. A
	// response over the bound is replaced by an error.
	bytes int
	// abandoned is how many calls with an onResponse function are remembered for a late response
	// after their Work returned. The oldest is forgotten first.
	abandoned int
}

func (o Options) withDefaults() Options {
	o.MaxQueue = cmp.Or(o.MaxQueue, 4<<20)
	o.Grace = cmp.Or(o.Grace, 2*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Tap = o.Tap.guarded(o.Logger)
	o.limits.unanswered = cmp.Or(o.limits.unanswered, 4096)
	o.limits.bytes = cmp.Or(o.limits.bytes, 64<<20)
	o.limits.abandoned = cmp.Or(o.limits.abandoned, 1000)
	return o
}

// Tap observes every message as it was read (sent is false) or is about to be written. It is called
// concurrently by the read loop and the write loop, must not keep or change message, and delays the
// connection while it runs.
type Tap func(sent bool, message []byte)

// guarded returns tap, which may be nil, so that its first panic is logged and ends only its calls.
func (tap Tap) guarded(log *slog.Logger) Tap {
	if tap == nil {
		return nil
	}
	var ended atomic.Bool
	return func(sent bool, message []byte) {
		if ended.Load() {
			return
		}
		defer func() {
			if value := recover(); value != nil && !ended.Swap(true) {
				LogPanic(log, value, "in", "tap")
			}
		}()
		tap(sent, message)
	}
}

// Conn is a connection to one peer. Its methods are safe for concurrent use.
type Conn struct {
	transport Transport
	handler   Handler
	options   Options
	log       *slog.Logger

	queue    *queue
	calls    *calls
	inflight *inflight
}

// NewConn returns a connection over t. Nothing is read or written before Serve.
func NewConn(t Transport, h Handler, o Options) *Conn {
	o = o.withDefaults()
	return &Conn{
		transport: t, handler: h, options: o, log: o.Logger,
		queue: newQueue(o.MaxQueue),
		calls: &calls{pending: make(map[string]*pendingCall),
			maxAbandoned: o.limits.abandoned},
		inflight: newInflight(o.limits.unanswered, o.limits.bytes, o.Budget),
	}
}

// Serve reads until the input or ctx ends, or the output fails. Then the contexts of all running
// requests end with the cause [ErrClosed], pending calls return ErrClosed, and Serve waits for up
// to Options.Grace until every request read so far is answered and the output is written. A request
// whose Work has not returned after three quarters of that time is answered with an error, and its
// Work is abandoned.
//
// Serve returns nil when the input or ctx ended, and otherwise the transport's error. It may be
// called once.
//
// Serve closes the transport only if a Read or Write has not returned by then, which is the case
// when ctx or the output ended first, or when the peer does not take the output in time. It leaves
// no goroutine behind, unless a Read or Write does not return even then.
func (c *Conn) Serve(ctx context.Context) error {
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(ErrClosed)
	output, endOutput := context.WithCancel(context.WithoutCancel(ctx))
	defer endOutput()
	read, written := make(chan error, 1), make(chan error, 1)
	go func() { read <- c.readLoop(base) }()
	go func() { written <- c.queue.writeTo(output, c.transport, c.options.Tap) }()

	var err error
	reading, writing := true, true
	select {
	case err = <-read:
		reading = false
	case err = <-written:
		writing = false
	case <-ctx.Done():
		reading = !c.stopRead(read)
	}
	deadline := time.Now().Add(c.options.Grace)
	idle := c.inflight.end()
	end(ErrClosed)
	c.calls.end()
	c.finishRequests(idle, deadline)
	c.queue.close()
	if writing {
		writing = !c.flush(written, deadline)
	}
	if reading || writing {
		endOutput()
		_ = c.transport.Close()
	}
	// A Read or Write that Close can unblock returns at once.
	const closeWait = 100 * time.Millisecond
	if writing {
		await(written, closeWait)
	}
	if reading {
		await(read, closeWait)
	}
	return err
}

// Ended reports whether nothing more is read, so that the contexts of all requests have ended or are
// about to.
func (c *Conn) Ended() bool { return c.inflight.ended() }

// stopRead lets the read loop end with the last message that it has read, which it would drop if
// the connection ended first. It reports whether the loop has ended.
func (c *Conn) stopRead(read <-chan error) bool {
	s, ok := c.transport.(ReadStopper)
	return ok && s.StopRead() && await(read, c.options.Grace/4)
}

// finishRequests waits until all running requests are answered, so that idle is closed, and shortly
// before the deadline answers the rest.
func (c *Conn) finishRequests(idle <-chan struct{}, deadline time.Time) {
	if await(idle, time.Until(deadline)-c.options.Grace/4) {
		return
	}
	late := c.inflight.claimAll()
	for _, id := range late {
		// An error means that the output has ended.
		_ = c.queue.force(respond(id, nil, Errorf(CodeInternal,
			"the connection closed before the request was finished")))
	}
	c.log.Warn("requests did not end with their connection", "unanswered", len(late))
}

// flush waits until the closed queue is written, and reports whether that happened before the
// deadline.
func (c *Conn) flush(written <-chan error, deadline time.Time) bool {
	select {
	case err := <-written:
		if err != nil {
			c.log.Debug("the peer left before it had read all output", "error", err)
		}
		return true
	case <-time.After(time.Until(deadline)):
		c.log.Warn("the peer did not read all output")
		return false
	}
}

// await waits for done for up to d and reports whether it was received.
func await[T any](done <-chan T, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// readLoop reads messages until the input or the connection ends, and returns nil then. It returns
// the error of a transport that broke.
func (c *Conn) readLoop(ctx context.Context) error {
	for {
		m, err := c.transport.Read()
		tooLong, rejected := errors.AsType[*TooLongError](err)
		if err != nil && !rejected {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		if m = bytes.Trim(m, " \t\r\n"); len(m) == 0 && !rejected {
			continue
		}
		// Holding makes Serve wait until a message read before the end is answered.
		if ctx.Err() != nil || !c.inflight.hold() {
			return nil
		}
		if rejected {
			c.rejectTooLong(ctx, m, tooLong.Limit)
		} else {
			c.receive(ctx, m)
		}
		c.inflight.holds.Done()
	}
}

// rejectTooLong answers a message over the limit, of which only the beginning was read. If that
// contains the id, a request gets the error as its response, and a response makes its call fail.
func (c *Conn) rejectTooLong(ctx context.Context, beginning []byte, limit int) {
	m := decodeBeginning(beginning)
	c.log.Warn("rejected a message over the limit", "id", m.id.raw,
		"method", shownName(m.method), "response", m.isResponse, "limit", limit)
	c.reportInvalid(ctx, m, beginning, true)
	if m.isResponse {
		m.response.err = &TooLongError{Limit: limit, What: "the peer's response"}
	}
	c.refuse(ctx, m, Errorf(CodeInvalidRequest, "the message is longer than the limit of %d bytes",
		limit))
}

func (c *Conn) reportInvalid(ctx context.Context, m message, line []byte, tooLong bool) {
	if !m.isResponse && m.id.IsZero() && c.options.Invalid != nil {
		c.options.Invalid(ctx, line, tooLong)
	}
}

// refuse answers an invalid message with the error e. An error with the id of a response would
// answer a request of the peer: instead, the call that the response belongs to ends.
func (c *Conn) refuse(ctx context.Context, m message, e *Error) {
	id := m.id
	if m.isResponse {
		id = ID{}
	}
	c.reject(ctx, id, e)
	if m.isResponse {
		c.calls.resolve(m.id.raw, m.response)
	}
}

// receive handles one message.
func (c *Conn) receive(ctx context.Context, line []byte) {
	if c.options.Tap != nil {
		c.options.Tap(false, line)
	}
	m, rejected := decode(line)
	if rejected != nil {
		c.reportInvalid(ctx, m, line, false)
		c.refuse(ctx, m, rejected)
		return
	}
	if m.isResponse {
		if !c.calls.resolve(m.id.raw, m.response) {
			c.log.Debug("ignoring a response to an unknown request")
		}
		return
	}
	invalid := checkParams(m.params, c.options.OpaqueParams)
	switch {
	case invalid != nil && m.id.IsZero():
		c.log.Debug("ignoring a notification with invalid params", "method", shownName(m.method),
			"error", asError(invalid).Code)
	case invalid != nil:
		c.reject(ctx, m.id, asError(invalid))
	case m.method == cancelMethod && m.id.IsZero():
		c.cancelRequest(m.params)
	case m.id.IsZero():
		c.handleNotification(ctx, m)
	default:
		c.handleRequest(ctx, m)
	}
}

// checkParams returns an error for params that are not an object or an array or, unless they are
// opaque, contain duplicate names.
func checkParams(params json.RawMessage, opaque bool) error {
	if len(params) == 0 || string(params) == "null" {
		return nil
	}
	if params[0] != '{' && params[0] != '[' {
		return Errorf(CodeInvalidParams, "params are neither an object nor an array")
	}
	if opaque {
		return nil
	}
	return strictjson.Refuse(strictjson.Check(params, nil)...)
}

// cancelRequest cancels the request that the params of a $/cancel_request identify.
func (c *Conn) cancelRequest(params json.RawMessage) {
	o, err := strictjson.ParseObject(params)
	if err != nil {
		return
	}
	if id, _ := o.Get("requestId"); !c.inflight.cancel(ID{raw: string(id)}) {
		c.log.Debug("ignoring a cancellation of an unknown request")
	}
}

// handleRequest passes a request to the handler and starts its Work.
func (c *Conn) handleRequest(base context.Context, m message) {
	if !c.inflight.acquire(base) {
		c.send(respond(m.id, nil, errConnClosed))
		return
	}
	ctx, cancel := context.WithCancelCause(base)
	if rejected := c.inflight.add(m, cancel); rejected != nil {
		cancel(nil)
		c.inflight.free()
		c.reject(base, m.id, rejected)
		return
	}
	answered := make(chan struct{})
	ctx = context.WithValue(ctx, answeredKey{}, (<-chan struct{})(answered))
	t := &task{conn: c, ctx: ctx, cancel: cancel, answered: answered,
		request: &Request{ID: m.id, Method: m.method, Params: m.params}}
	work := t.accept()
	go t.run(work)
}

// handleNotification passes a notification to the handler and starts its Work, if there is any. If
// the connection is ending, so that ctx has ended, it calls the Work itself, which gives back what
// Accept has taken.
func (c *Conn) handleNotification(ctx context.Context, m message) {
	t := &task{conn: c, ctx: ctx, request: &Request{Method: m.method, Params: m.params}}
	work := t.accept()
	switch {
	case work == nil:
	case c.inflight.acquire(ctx):
		go t.run(work)
	default:
		t.try(func() { _, _ = work() })
	}
}

// reject answers a message that does not reach the handler. If the output is full it does not wait,
// but the rejection counts as a running request until it is queued.
func (c *Conn) reject(ctx context.Context, id ID, e *Error) {
	m := respond(id, nil, e)
	if err := c.queue.try(m, c.queue.limit); !errors.Is(err, ErrQueueFull) {
		return
	}
	if !c.inflight.acquire(ctx) {
		c.send(m)
		return
	}
	go func() {
		defer c.inflight.free()
		c.send(m)
	}()
}

// send queues a response, or waits while the output is full. If too many bytes are waiting or
// unanswered already, it sends an error instead of the response. Once the connection has ended the
// response is dropped.
func (c *Conn) send(m outgoing) {
	if err := c.queue.try(m, c.queue.limit); !errors.Is(err, ErrQueueFull) {
		return
	}
	size := m.size()
	if !c.inflight.reserve(size) {
		size, m = 0, outgoing{id: m.id, err: errUnread}
	}
	defer c.inflight.unreserve(size)
	_ = c.queue.wait(context.Background(), m, c.queue.limit)
}

// Notify queues a notification. While the queue is full it waits until ctx or the connection ends
// ([ErrClosed]).
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return c.queue.wait(ctx, outgoing{method: method, payload: params}, c.queue.stream)
}

// TryNotify queues a notification, or returns [ErrQueueFull] instead of waiting.
func (c *Conn) TryNotify(method string, params json.RawMessage) error {
	return c.queue.try(outgoing{method: method, payload: params}, c.queue.limit)
}

// Room returns nil if Notify would not wait, otherwise a channel that is closed when that may have
// changed.
func (c *Conn) Room() <-chan struct{} { return c.queue.full(c.queue.stream) }

// Full returns nil if a response would not wait, otherwise a channel that is closed when that may
// have changed.
func (c *Conn) Full() <-chan struct{} { return c.queue.full(c.queue.limit) }

// ForceNotify queues a notification even if the queue is full. It is for small, rare messages that
// must not be lost, such as cancellations. It fails only with [ErrClosed].
func (c *Conn) ForceNotify(method string, params json.RawMessage) error {
	return c.queue.force(outgoing{method: method, payload: params})
}

// Refuse tells a peer that is not served the reason, as the answer to its first request: programs
// show that, but not why a connection has ended. It waits for the request for up to 3 seconds. The
// caller closes the transport.
func Refuse(ctx context.Context, t Transport, reason *Error) {
	const patience = 3 * time.Second
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	handler := func(_ context.Context, r *Request) Work {
		r.AfterResponse(stop)
		return func() (json.RawMessage, error) { return nil, reason }
	}
	_ = NewConn(t, HandlerFunc(handler), Options{}).Serve(ctx)
}

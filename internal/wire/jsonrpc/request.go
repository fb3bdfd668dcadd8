package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// Handler handles incoming messages.
type Handler interface {
	// Accept is called on the read loop, one message at a time in arrival order, for every request
	// and notification except $/cancel_request. While it runs nothing else is read, so it must not
	// wait for another message. It returns the remaining work. nil means that a notification is
	// done or ignored, and that a request is answered with -32601.
	//
	// A request's ctx ends when the request is answered, when the peer cancels it (cause
	// [ErrRequestCancelled]) and when the connection ends (cause [ErrClosed]); a notification's
	// only when the connection ends.
	Accept(ctx context.Context, r *Request) Work
}

// HandlerFunc is a function that implements Handler.
type HandlerFunc func(ctx context.Context, r *Request) Work

// Accept calls f.
func (f HandlerFunc) Accept(ctx context.Context, r *Request) Work { return f(ctx, r) }

// Work is the part of a request that may take time. It runs on its own goroutine and returns the
// response; a nil result is sent as {}. The result of a notification's Work is dropped and its
// error is logged.
type Work = func() (json.RawMessage, error)

// Fail returns Work that returns err.
func Fail(err error) Work {
	return func() (json.RawMessage, error) { return nil, err }
}

// Request is an incoming request or notification. It is owned by the handler that accepts it.
type Request struct {
	// ID is zero for a notification.
	ID ID
	// Method is the method's name, never empty.
	Method string
	// Params is the params member as sent, nil when absent, and nil once Work has returned. Parts
	// of it that are passed on must not be modified.
	Params json.RawMessage

	before func(json.RawMessage, error) (json.RawMessage, error)
	after  []func()
}

// IsNotification reports whether the message is a notification.
func (r *Request) IsNotification() bool { return r.ID.IsZero() }

// BeforeResponse sets a function that turns what Work returned into the response. It is called
// once, on the request's goroutine, as soon as the output queue has room: when the peer reads
// slowly, messages read in the meantime may still change the response. decide must not block. Call
// BeforeResponse before Work returns; the last call wins.
func (r *Request) BeforeResponse(
	decide func(result json.RawMessage, err error) (json.RawMessage, error),
) {
	r.before = decide
}

// AfterResponse adds a function to call on the request's goroutine once the response is queued:
// what f sends follows the response. If the connection ended without a response, f is called as
// well, and sending fails with [ErrClosed]. Call AfterResponse before Work returns, from one
// goroutine at a time.
func (r *Request) AfterResponse(f func()) { r.after = append(r.after, f) }

// answeredKey is the context key of the channel that Answered returns.
type answeredKey struct{}

// Answered returns a channel that is closed once the request that ctx belongs to has been answered:
// what is sent after that follows the response. It is also closed if the connection ended without a
// response, unless the request's Work never returns. Answered returns nil if ctx belongs to no
// request.
func Answered(ctx context.Context) <-chan struct{} {
	answered, _ := ctx.Value(answeredKey{}).(<-chan struct{})
	return answered
}

// WithAnswered returns a context for which Answered returns the given channel.
func WithAnswered(ctx context.Context, answered <-chan struct{}) context.Context {
	return context.WithValue(ctx, answeredKey{}, answered)
}

// task runs the handler for one incoming request or notification.
type task struct {
	conn    *Conn
	ctx     context.Context
	request *Request

	// For a request:
	cancel   context.CancelCauseFunc
	answered chan struct{}
}

// accept calls the handler. It returns Work that fails for a panic and for an unknown method.
func (t *task) accept() (work Work) {
	r := t.request
	if r.Method != "" && r.Method != cancelMethod &&
		!t.try(func() { work = t.conn.handler.Accept(t.ctx, r) }) {
		return Fail(errPanic)
	}
	if work == nil && !r.IsNotification() {
		work = Fail(MethodNotFound(shownName(r.Method)))
	}
	return work
}

// run runs work and sends the response, even if work ends its goroutine.
func (t *task) run(work Work) {
	defer t.conn.inflight.free()
	result, err := json.RawMessage(nil), error(errPanic)
	defer func() {
		r, e := result, err
		result, err = nil, nil // only finish keeps them while the response waits
		t.finish(r, e)
	}()
	t.try(func() { result, err = work() })
}

// finish sends the response and calls the functions that follow it.
func (t *task) finish(result json.RawMessage, err error) {
	r := t.request
	if r.IsNotification() {
		if err != nil {
			t.conn.log.Debug("notification failed", "method", shownName(r.Method), "error", err)
		}
		return
	}
	defer t.cancel(nil)
	r.Params = nil // free the memory while the response waits
	send := t.conn.send
	if r.before != nil {
		_ = t.conn.queue.await(context.Background(), t.conn.queue.limit)
		if !t.try(func() { result, err = r.before(result, err) }) {
			err = errPanic
		}
		// Others may have taken the room, so the queue may exceed its limit by one response for
		// each goroutine that waited.
		send = func(m outgoing) { _ = t.conn.queue.force(m) }
	}
	if t.conn.inflight.claim(r.ID) {
		var failure *Error
		if err != nil {
			failure = t.asError(err)
		}
		send(respond(r.ID, result, failure))
	}
	close(t.answered)
	for _, f := range r.after {
		t.try(f)
	}
}

// asError converts err to the error of the response. Whatever the error, a request that the peer
// cancelled is answered as cancelled.
func (t *task) asError(err error) *Error {
	switch cause := context.Cause(t.ctx); {
	case errors.Is(cause, ErrRequestCancelled):
		return &Error{Code: CodeCancelled, Message: "request cancelled"}
	case errors.Is(cause, ErrClosed) && (errors.Is(err, ErrClosed) ||
		errors.Is(err, context.Canceled)):
		return errConnClosed
	default:
		return asError(err)
	}
}

// try calls a function of the handler. If it panics, that is logged, and try returns false.
func (t *task) try(f func()) (ok bool) {
	defer func() {
		if value := recover(); value != nil {
			LogPanic(t.conn.log, value, "method", shownName(t.request.Method))
		}
	}()
	f()
	return true
}

// Budget limits the bytes that several connections keep together.
type Budget interface {
	// Reserve makes room for n bytes, until Release. It returns false if there is none.
	Reserve(n int) bool
	Release(n int)
}

// unlimited is the Budget of a connection that shares none.
type unlimited struct{}

func (unlimited) Reserve(int) bool { return true }
func (unlimited) Release(int)      {}

// inflight tracks the incoming messages that are being handled.
type inflight struct {
	slots    chan struct{} // one is taken for each running task
	maxBytes int
	budget   Budget

	mu       sync.Mutex
	requests map[string]*pendingRequest // unanswered, by key of their id
	bytes    int                        // of the requests and of what reserve added
	ending   bool                       // hold fails
	holds    sync.WaitGroup
}

type pendingRequest struct {
	id     ID
	bytes  int
	cancel context.CancelCauseFunc
}

func newInflight(limit, maxBytes int, b Budget) *inflight {
	if b == nil {
		b = unlimited{}
	}
	return &inflight{
		slots:    make(chan struct{}, limit),
		maxBytes: maxBytes,
		budget:   b,
		requests: make(map[string]*pendingRequest),
	}
}

// hold adds to holds. It returns false if the connection is ending.
func (r *inflight) hold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return false
	}
	r.holds.Add(1)
	return true
}

// acquire waits for a slot and holds. It returns false if the connection is ending, which also ends
// ctx.
func (r *inflight) acquire(ctx context.Context) bool {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if !r.hold() {
		<-r.slots
		return false
	}
	return true
}

// free undoes acquire.
func (r *inflight) free() {
	<-r.slots
	r.holds.Done()
}

// add records a request. It returns an error if the request must be rejected.
func (r *inflight) add(m message, cancel context.CancelCauseFunc) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, n := m.id.key(), len(m.method)+len(m.params)
	if _, taken := r.requests[key]; taken {
		return Errorf(CodeInvalidRequest, "a request with this id is not answered yet")
	}
	if !r.fitsLocked(n) {
		return Errorf(CodeInternal,
			"the request has %d bytes, and %d bytes of others are not finished (limit %d): "+
				"read their responses and send it again", n, r.bytes, r.maxBytes)
	}
	if !r.budget.Reserve(n) {
		return Errorf(CodeInternal,
			"the request has %d bytes, and too many bytes of requests over all connections are "+
				"not finished: send it again when others are answered", n)
	}
	r.requests[key] = &pendingRequest{id: m.id, bytes: n, cancel: cancel}
	r.bytes += n
	return nil
}

// fitsLocked reports whether n more bytes are within the limit. A single message always is.
func (r *inflight) fitsLocked(n int) bool { return r.bytes == 0 || r.bytes+n <= r.maxBytes }

// reserve counts the n bytes of a response that waits, until unreserve. It returns false if they
// are over the limit.
func (r *inflight) reserve(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	fits := r.fitsLocked(n) && r.budget.Reserve(n)
	if fits {
		r.bytes += n
	}
	return fits
}

// unreserve undoes reserve.
func (r *inflight) unreserve(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releaseLocked(n)
}

func (r *inflight) releaseLocked(n int) {
	r.bytes -= n
	r.budget.Release(n)
}

// claim removes a request and reports whether it was unanswered: only the caller that gets true may
// answer it.
func (r *inflight) claim(id ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := id.key()
	p, unanswered := r.requests[key]
	if unanswered {
		delete(r.requests, key)
		r.releaseLocked(p.bytes)
	}
	return unanswered
}

// claimAll claims all requests.
func (r *inflight) claimAll() []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []ID
	for _, p := range r.requests {
		all = append(all, p.id)
		r.releaseLocked(p.bytes)
	}
	clear(r.requests)
	return all
}

// cancel ends the context of a request, and reports whether it was running.
func (r *inflight) cancel(id ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, unanswered := r.requests[id.key()]
	if unanswered {
		p.cancel(ErrRequestCancelled)
	}
	return unanswered
}

// ended reports whether hold fails.
func (r *inflight) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending
}

// end makes hold fail from now on, and returns a channel that is closed once nothing is held.
func (r *inflight) end() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	idle := make(chan struct{})
	go func() {
		r.holds.Wait()
		close(idle)
	}()
	return idle
}

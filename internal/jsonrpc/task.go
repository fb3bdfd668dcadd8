package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// task is one incoming request or notification in the handler's hands.
type task struct {
	conn    *Conn
	ctx     context.Context
	cancel  context.CancelCauseFunc // of a request
	request *Request

	answered chan struct{} // of a request
}

// errPanic is what a panic is answered with. Its details are in the log.
var errPanic = &Error{Code: CodeInternal, Message: "internal error"}

// errClosedBefore answers a request that was read when the connection was ending.
var errClosedBefore = &Error{Code: CodeCancelled, Message: "the connection closed"}

// accept calls the handler. A panic, and a request that nobody serves, become Work.
func (t *task) accept() (work Work) {
	defer t.recovered(func() { work = failed(errPanic) })
	r := t.request
	if r.Method != "" && r.Method != cancelMethod {
		work = t.conn.handler.Accept(t.ctx, r)
	}
	if work == nil && !r.IsNotification() {
		work = failed(MethodNotFound(brief(r.Method)))
	}
	return work
}

// run does the work and answers. It answers even if work ends its goroutine.
func (t *task) run(work Work) {
	defer t.conn.running.leave()
	result, err := json.RawMessage(nil), error(errPanic)
	defer func() { t.finish(result, err) }()
	result, err = t.perform(work)
}

func (t *task) perform(work Work) (result json.RawMessage, err error) {
	defer t.recovered(func() { result, err = nil, errPanic })
	return work()
}

// finish answers the request, once.
func (t *task) finish(result json.RawMessage, err error) {
	r := t.request
	if r.IsNotification() {
		if err != nil {
			t.conn.log.Debug("notification failed", "method", brief(r.Method), "error", err)
		}
		return
	}
	defer t.cancel(nil)
	put := t.conn.send
	if r.before != nil {
		t.conn.queue.awaitRoom()
		result, err = t.decide(result, err)
		put = t.conn.sendAtOnce
	}
	if t.conn.running.claim(r.ID) {
		var failure *Error
		if err != nil {
			failure = t.answer(err)
		}
		put(respond(r.ID, result, failure))
	}
	close(t.answered)
	for _, f := range r.after {
		t.follow(f)
	}
}

// decide has the handler decide the response.
func (t *task) decide(result json.RawMessage, err error) (_ json.RawMessage, decided error) {
	defer t.recovered(func() { decided = errPanic })
	return t.request.before(result, err)
}

// answer is err as a response's error. What comes of a request that the peer cancelled is its cancellation (W6).
func (t *task) answer(err error) *Error {
	switch cause := context.Cause(t.ctx); {
	case errors.Is(cause, ErrRequestCancelled):
		return &Error{Code: CodeCancelled, Message: "request cancelled"}
	case errors.Is(cause, ErrClosed) && (errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled)):
		return errClosedBefore
	default:
		return answer(err)
	}
}

func (t *task) follow(f func()) {
	defer t.recovered(func() {})
	f()
}

// recovered is deferred around the handler's code: it logs a panic and calls then.
func (t *task) recovered(then func()) {
	value := recover()
	if value == nil {
		return
	}
	LogPanic(t.conn.log, value, "method", brief(t.request.Method))
	then()
}

// LogPanic logs the value of a panic with its stack and further attributes; it is called where the panic is
// recovered. Values of the program's own may quote messages, so only their type is told (W8).
func LogPanic(log *slog.Logger, value any, attributes ...any) {
	what := fmt.Sprintf("%T", value)
	if err, ok := value.(runtime.Error); ok {
		what = err.Error()
	}
	log.Error("panic", append(attributes, "panic", what, "stack", string(debug.Stack()))...)
}

// send queues a response, waiting while the output is full. When the connection ended there is nobody to
// answer.
func (c *Conn) send(m outgoing) {
	_ = c.queue.wait(context.Background(), m, c.queue.limit)
}

// sendAtOnce queues a response that has waited for room. Others may have taken it meanwhile, so this may be one
// response more for each that waited.
func (c *Conn) sendAtOnce(m outgoing) { _ = c.queue.force(m) }

package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
)

// ID is the id of a request, kept as the JSON text that was sent, so that it is
// echoed exactly (clause W4). The zero ID means a notification. IDs compare with ==.
type ID struct{ raw string }

// IsZero reports whether there is no id: the message is a notification.
func (id ID) IsZero() bool { return id.raw == "" }

// String is the id as JSON text, "" for the zero ID.
func (id ID) String() string { return id.raw }

// Request is an incoming request or notification. It belongs to the handler that
// accepts it; nothing else changes or reads it.
type Request struct {
	// ID is zero for a notification.
	ID ID
	// Method is the method's name, never empty.
	Method string
	// Params is the params member as sent, nil when absent. It must not be modified.
	Params json.RawMessage

	before func(json.RawMessage, error) (json.RawMessage, error)
	after  []func()
}

// IsNotification reports whether nobody waits for an answer.
func (r *Request) IsNotification() bool { return r.ID.IsZero() }

// BeforeResponse has decide make the response of what Work returned, right before it is put into the output queue, when
// there is room for it: a peer that does not read has a response wait, and what was read meanwhile may change it. decide
// is called once, on the request's goroutine, and does not block. Call BeforeResponse before Work returns; the last call counts.
func (r *Request) BeforeResponse(decide func(result json.RawMessage, err error) (json.RawMessage, error)) {
	r.before = decide
}

// AfterResponse has f called once this request's response is in the output queue, on the
// request's goroutine: what f sends follows the response on the wire. If the connection ended first there is
// no response, and f is called all the same; what it sends fails with [ErrClosed]. Call it before Work
// returns, from one goroutine at a time.
func (r *Request) AfterResponse(f func()) { r.after = append(r.after, f) }

// answeredKey is under what a request's context holds the channel that [Answered] returns.
type answeredKey struct{}

// Answered returns a channel that is closed when the request whose context ctx is, or is derived from, was
// answered: what is sent after that follows its response on the wire. It is closed as well when the connection
// ended without a response, unless the request's Work never returns. It is nil if there is no such request.
func Answered(ctx context.Context) <-chan struct{} {
	answered, _ := ctx.Value(answeredKey{}).(<-chan struct{})
	return answered
}

// Work is the part of a request that may take its time. It runs on its own
// goroutine; what it returns is the response, exactly once. For a notification
// the result is dropped and an error is logged. A nil result is sent as {}.
type Work func() (json.RawMessage, error)

// Handler takes what arrives.
type Handler interface {
	// Accept is called on the read loop, one message at a time in arrival order, for
	// every request and notification but $/cancel_request. It must not wait for
	// anything that takes a message to happen; waiting stops the reading, which
	// is backpressure. It returns the rest of the work, or nil: for a notification
	// that is done or ignored; for a request nil Work answers -32601.
	//
	// ctx ends when the request was answered, when the peer cancels it (cause
	// [ErrRequestCancelled]) and when the connection ends (cause [ErrClosed]). That of a
	// notification ends only with the connection.
	Accept(ctx context.Context, r *Request) Work
}

// HandlerFunc is a Handler that is a function.
type HandlerFunc func(ctx context.Context, r *Request) Work

// Accept calls f.
func (f HandlerFunc) Accept(ctx context.Context, r *Request) Work { return f(ctx, r) }

// JSON-RPC and ACP error codes.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeCancelled      = -32800
)

// Error is a JSON-RPC error object, ours or the peer's. Work that returns an
// error whose tree holds an *Error answers with it; one that holds a
// *violation.Error answers -32602 with the violations as data; any other error answers
// -32603 with the error's text. Whatever the error, a request that the peer has cancelled
// answers -32800 (W6).
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error is the message with its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Errorf returns an *Error without data.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// MethodNotFound is the answer to a method that nobody serves.
func MethodNotFound(method string) *Error {
	return Errorf(CodeMethodNotFound, "method not found: %s", method)
}

package wire

import (
	"context"
	"encoding/json"
	"io"
)

// Conn is one connection. Its methods are safe for concurrent use.
type Conn struct {
	in      io.Reader
	out     io.Writer
	handler Handler
	options Options
}

// NewConn returns a connection that reads in and writes out. Nothing is read before Serve.
func NewConn(in io.Reader, out io.Writer, h Handler, o Options) *Conn {
	return &Conn{in: in, out: out, handler: h, options: o}
}

// Call queues a request, in the order of the calls and without blocking. Work waits for the response and
// returns its result, or the peer's error as an *Error. If the queue is full Work
// returns [ErrQueueFull]. When ctx ends first, the peer is sent $/cancel_request and Work returns ctx's cause;
// the late response is ignored.
func (c *Conn) Call(ctx context.Context, method string, params json.RawMessage) Work {
	panic("types only")
}

// Notify queues a notification. It waits while the queue is full, until ctx ends.
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	panic("types only")
}

// Post is Notify that does not wait: it returns [ErrQueueFull] instead.
func (c *Conn) Post(method string, params json.RawMessage) error { panic("types only") }

package jsonrpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

// Conn is one connection. Its methods are safe for concurrent use.
type Conn struct {
	in      io.Reader
	out     io.Writer
	handler Handler
	options Options
	log     *slog.Logger

	queue   *queue
	calls   *calls
	running *running
	serving atomic.Bool
}

// NewConn returns a connection that reads in and writes out. Nothing is read or written before Serve.
func NewConn(in io.Reader, out io.Writer, h Handler, o Options) *Conn {
	o = o.withDefaults()
	return &Conn{
		in: in, out: out, handler: h, options: o, log: o.Logger,
		queue:   newQueue(o.MaxQueue),
		calls:   newCalls(o.MaxGivenUp),
		running: newRunning(o.MaxUnanswered, o.MaxUnansweredBytes),
	}
}

// Serve reads until the input or ctx ends, or the output fails. Then the context of every request that is running
// ends (cause [ErrClosed]), calls of ours return ErrClosed, and Serve waits, at
// most Options.Grace, until all requests read before are answered and the output is
// taken (W9). A request whose Work has not returned by three quarters of that time is answered with an
// error, and its Work is left behind.
//
// It returns nil when the input or ctx ended, and the error of an input or output that broke. It may be called
// once.
//
// Serve leaves no goroutine of its own, with one exception: a Read or Write that does not
// return. To end one, Serve closes in when ctx or the output ended, and out when it is not taken in time, if
// they are io.Closers. Some streams, such as a terminal or an inherited blocking pipe, stay in Read after Close.
func (c *Conn) Serve(ctx context.Context) error {
	if c.serving.Swap(true) {
		return errors.New("wire: Serve called twice")
	}
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(ErrClosed)
	read, written := make(chan error, 1), make(chan error, 1)
	go func() { read <- c.readLoop(base) }()
	go func() { written <- c.queue.writeTo(c.out, c.options.Tap) }()

	var err error
	reading, writing := true, true
	select {
	case err = <-read:
		reading = false
	case err = <-written:
		writing = false
	case <-ctx.Done():
	}
	deadline := time.Now().Add(c.options.Grace)
	end(ErrClosed)
	c.calls.end()
	if reading {
		stop(c.in)
	}
	c.settle(deadline)
	c.queue.close()
	if writing {
		c.flush(written, deadline)
	}
	if reading {
		await(read, unblocked)
	}
	return err
}

// unblocked is how long a stream's goroutine may take to return once the stream was closed. One that
// does at all returns at once.
const unblocked = 100 * time.Millisecond

// settle waits until what runs has ended, and near the deadline answers for what has not.
func (c *Conn) settle(deadline time.Time) {
	idle := c.running.end()
	if await(idle, time.Until(deadline)-c.options.Grace/4) {
		return
	}
	late := c.running.claimAll()
	for _, id := range late {
		// An error means that the output ended.
		_ = c.queue.force(respond(id, nil, Errorf(CodeInternal, "the connection closed before the request was finished")))
	}
	c.log.Warn("requests did not end with their connection", "unanswered", len(late))
}

// flush waits until the closed queue is written.
func (c *Conn) flush(written <-chan error, deadline time.Time) {
	select {
	case err := <-written:
		if err != nil {
			c.log.Debug("the peer left before it took all output", "error", err)
		}
	case <-time.After(time.Until(deadline)):
		c.log.Warn("the peer did not take all output")
		stop(c.out)
		await(written, unblocked)
	}
}

// await waits for done, at most for d, and reports whether it came.
func await[T any](done <-chan T, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// stop closes a stream, if that is possible, so that a Read or Write of it returns.
func stop(stream any) {
	if closer, ok := stream.(io.Closer); ok {
		// The stream is given up; nobody could act on the error.
		_ = closer.Close()
	}
}

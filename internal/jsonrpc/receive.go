package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// readLoop takes lines until the input or the connection ends. It returns nil for either, and the
// error of an input that broke.
func (c *Conn) readLoop(ctx context.Context) error {
	lines := NewReader(c.in, c.options.MaxLine)
	for {
		line, err := lines.Append(nil)
		long, refused := errors.AsType[*TooLongError](err)
		if err != nil && !refused {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if line = bytes.Trim(line, " \t\r\n"); len(line) == 0 && !refused {
			continue
		}
		// What is read before the end is answered: Serve waits for it.
		if ctx.Err() != nil || !c.running.hold() {
			return nil
		}
		if refused {
			c.refuse(ctx, ID{}, Errorf(CodeInvalidRequest, "the message is longer than the limit of %d bytes", long.Limit))
		} else {
			c.receive(ctx, line)
		}
		c.running.release()
	}
}

// receive takes one line.
func (c *Conn) receive(ctx context.Context, line []byte) {
	if c.options.Tap != nil {
		c.options.Tap(Received, line)
	}
	e, refused := decode(line)
	if refused != nil {
		c.refuse(ctx, ID{}, refused)
		if e.response {
			c.calls.resolve(e.id.raw, reply{err: errMalformedResponse})
		}
		return
	}
	if e.response {
		if !c.calls.resolve(e.id.raw, e.reply) {
			c.log.Debug("response to nothing that was asked")
		}
		return
	}
	wrong := checkParams(e.params, c.options.Params)
	switch {
	case wrong != nil && e.id.IsZero():
		c.log.Debug("notification ignored", "method", brief(e.method), "error", answer(wrong).Code)
	case wrong != nil:
		c.refuse(ctx, e.id, answer(wrong))
	case e.method == cancelMethod && e.id.IsZero():
		c.cancelRequest(e.params)
	case e.id.IsZero():
		c.notified(ctx, e)
	default:
		c.requested(ctx, e)
	}
}

// cancelRequest ends the context of the request that params name (W6).
func (c *Conn) cancelRequest(params json.RawMessage) {
	o, err := strictjson.ParseObject(params)
	if err != nil {
		return
	}
	if id, _ := o.Get("requestId"); !c.running.cancel(ID{raw: string(id)}) {
		c.log.Debug("cancellation of nothing that runs")
	}
}

// requested has a request accepted and worked on.
func (c *Conn) requested(base context.Context, e envelope) {
	if !c.running.enter(base) {
		c.send(respond(e.id, nil, errClosedBefore))
		return
	}
	ctx, cancel := context.WithCancelCause(base)
	if refused := c.running.add(e, cancel); refused != nil {
		cancel(nil)
		c.running.leave()
		c.refuse(base, e.id, refused)
		return
	}
	answered := make(chan struct{})
	ctx = context.WithValue(ctx, answeredKey{}, (<-chan struct{})(answered))
	t := &task{conn: c, ctx: ctx, cancel: cancel, answered: answered, request: &Request{ID: e.id, Method: e.method, Params: e.params}}
	work := t.accept()
	go t.run(work)
}

// notified has a notification accepted, and worked on if there is Work.
func (c *Conn) notified(ctx context.Context, e envelope) {
	t := &task{conn: c, ctx: ctx, request: &Request{Method: e.method, Params: e.params}}
	work := t.accept()
	if work != nil && c.running.enter(ctx) {
		go t.run(work)
	}
}

// refuse answers a line that no handler sees. It does not wait while the output is full, but counts as a
// request until its answer is in the queue.
func (c *Conn) refuse(ctx context.Context, id ID, e *Error) {
	m := respond(id, nil, e)
	if err := c.queue.try(m, c.queue.limit); !errors.Is(err, ErrQueueFull) {
		return
	}
	if !c.running.enter(ctx) {
		c.send(m)
		return
	}
	go func() {
		defer c.running.leave()
		c.send(m)
	}()
}

// brief is a method's name for the log. The peer chose it, so its length is bounded.
func brief(method string) string {
	const limit = 64
	if len(method) > limit {
		return method[:limit] + "…"
	}
	return method
}

package jsonrpc

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
)

const cancelMethod = "$/cancel_request"

// Call queues a request, in the order of the calls and without blocking. Work waits for the
// response and returns its result, or the peer's error as an *Error; it is called once. It returns
// [ErrQueueFull] if the queue was full, and [ErrClosed] if the connection ended. When ctx ends
// first, the peer is sent $/cancel_request, Work returns ctx's cause, and the late response is
// ignored.
func (c *Conn) Call(ctx context.Context, method string, params json.RawMessage) Work {
	return c.CallFunc(ctx, method, params, nil)
}

// CallFunc is Call with a function to be called on the read loop when the response arrives: after
// everything the peer sent before it has been accepted, before anything it sent later, and before
// Work returns. onResponse is also called for a response that arrives after Work gave up, but not
// if the connection ends first or many calls have been given up since. It must not wait for another
// message. It may be nil.
func (c *Conn) CallFunc(
	ctx context.Context, method string, params json.RawMessage,
	onResponse func(result json.RawMessage, err error),
) Work {
	if ctx.Err() != nil {
		return Fail(context.Cause(ctx))
	}
	id, done := c.calls.add(onResponse)
	call := outgoing{id: id, method: method, payload: params}
	if err := c.queue.try(call, c.queue.limit); err != nil {
		c.calls.take(id)
		return Fail(err)
	}
	return func() (json.RawMessage, error) {
		select {
		case r := <-done:
			return r.result, r.err
		case <-ctx.Done():
			if c.calls.abandon(id) {
				// An error means that the connection has ended, and so has the request.
				_ = c.ForceNotify(cancelMethod, json.RawMessage(`{"requestId":`+id+`}`))
			}
			return nil, context.Cause(ctx)
		}
	}
}

// calls holds the requests that we sent and that are not answered yet.
type calls struct {
	mu      sync.Mutex
	last    int64
	pending map[string]*pendingCall // by id; nil once the connection has ended

	maxAbandoned int
	abandoned    []string // ids in pending whose Work gave up, oldest first
}

type pendingCall struct {
	done       chan<- response // nil once Work gave up
	onResponse func(result json.RawMessage, err error)
}

// add returns a new id and the channel that will receive its response.
func (c *calls) add(onResponse func(json.RawMessage, error)) (id string, done <-chan response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan response, 1)
	c.last++
	id = strconv.FormatInt(c.last, 10)
	if c.pending == nil {
		ch <- response{err: ErrClosed}
	} else {
		c.pending[id] = &pendingCall{done: ch, onResponse: onResponse}
	}
	return id, ch
}

// take removes and returns a call, or returns nil.
func (c *calls) take(id string) *pendingCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.pending[id]
	delete(c.pending, id)
	if taken != nil && taken.done == nil {
		c.abandoned = slices.DeleteFunc(c.abandoned, func(a string) bool { return a == id })
	}
	return taken
}

// resolve completes a call with the response that was just read. It reports whether somebody was
// waiting for it.
func (c *calls) resolve(id string, r response) bool {
	resolved := c.take(id)
	if resolved == nil {
		return false
	}
	if resolved.onResponse != nil {
		resolved.onResponse(r.result, r.err)
	}
	if resolved.done != nil {
		resolved.done <- r
	}
	return resolved.done != nil
}

// abandon records that Work no longer waits, and reports whether the call was unanswered. A call
// with onResponse stays pending for its late response; if there are too many of these, the oldest
// is dropped.
func (c *calls) abandon(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	call, unanswered := c.pending[id]
	switch {
	case !unanswered:
	case call.onResponse == nil:
		delete(c.pending, id)
	default:
		call.done = nil
		c.abandoned = append(c.abandoned, id)
		if len(c.abandoned) > c.maxAbandoned {
			delete(c.pending, c.abandoned[0])
			c.abandoned = c.abandoned[1:]
		}
	}
	return unanswered
}

// end completes all pending and future calls with ErrClosed.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.pending {
		if call.done != nil {
			call.done <- response{err: ErrClosed}
		}
	}
	c.pending, c.abandoned = nil, nil
}

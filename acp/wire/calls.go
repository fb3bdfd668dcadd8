package wire

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
)

const cancelMethod = "$/cancel_request"

// reply is how a request of ours was answered.
type reply struct {
	result json.RawMessage
	err    error
}

// calls are the requests of ours that are not answered yet.
type calls struct {
	mu      sync.Mutex
	last    int64
	pending map[string]chan<- reply // by id; nil once the connection ended
}

func newCalls() *calls { return &calls{pending: make(map[string]chan<- reply)} }

// add returns a new id and where its reply will come, once.
func (c *calls) add() (id string, done <-chan reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan reply, 1)
	c.last++
	id = strconv.FormatInt(c.last, 10)
	if c.pending == nil {
		ch <- reply{err: ErrClosed}
	} else {
		c.pending[id] = ch
	}
	return id, ch
}

// resolve gives the call id its reply. It reports whether there was such a call.
func (c *calls) resolve(id string, r reply) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch, ok := c.pending[id]
	if ok {
		delete(c.pending, id)
		ch <- r
	}
	return ok
}

// end gives all calls, now and later, ErrClosed.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.pending {
		ch <- reply{err: ErrClosed}
	}
	c.pending = nil
}

// Call queues a request, in the order of the calls and without blocking. Work waits for the response and
// returns its result, or the peer's error as an *Error. It is called once. If the queue is full Work
// returns [ErrQueueFull], if the connection ended [ErrClosed]. When ctx ends first, the peer is
// sent $/cancel_request and Work returns ctx's cause; the late response is ignored.
func (c *Conn) Call(ctx context.Context, method string, params json.RawMessage) Work {
	if ctx.Err() != nil {
		return failed(context.Cause(ctx))
	}
	id, done := c.calls.add()
	m := outgoing{id: id, method: method, payload: params}
	if err := c.queue.try(m, c.queue.limit); err != nil {
		c.calls.resolve(id, reply{err: err})
	}
	return func() (json.RawMessage, error) {
		select {
		case r := <-done:
			return r.result, r.err
		case <-ctx.Done():
			if c.calls.resolve(id, reply{}) {
				// An error means that the connection ended, and with it the request.
				_ = c.queue.force(outgoing{method: cancelMethod, payload: json.RawMessage(`{"requestId":` + id + `}`)})
			}
			return nil, context.Cause(ctx)
		}
	}
}

func failed(err error) Work {
	return func() (json.RawMessage, error) { return nil, err }
}

// Notify queues a notification. It waits while the queue is full, until ctx ends or the connection does ([ErrClosed]).
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return c.queue.wait(ctx, outgoing{method: method, payload: params}, c.queue.stream)
}

// Post is Notify that does not wait: it returns [ErrQueueFull] instead.
func (c *Conn) Post(method string, params json.RawMessage) error {
	return c.queue.try(outgoing{method: method, payload: params}, c.queue.limit)
}

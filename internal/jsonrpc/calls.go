package jsonrpc

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
)

const cancelMethod = "$/cancel_request"

// reply is how a request of ours was answered.
type reply struct {
	result json.RawMessage
	err    error
}

// call is a request of ours that is not answered yet.
type call struct {
	done     chan<- reply // nil once nobody waits any more
	answered func(result json.RawMessage, err error)
}

// calls are the requests of ours that are not answered yet.
type calls struct {
	mu      sync.Mutex
	last    int64
	pending map[string]*call // by id; nil once the connection ended

	maxGivenUp int
	givenUp    []string // the ids of those in pending for which nobody waits any more, the oldest first
}

func newCalls(maxGivenUp int) *calls {
	return &calls{pending: make(map[string]*call), maxGivenUp: maxGivenUp}
}

// add returns a new id and where its reply will come, once.
func (c *calls) add(answered func(json.RawMessage, error)) (id string, done <-chan reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan reply, 1)
	c.last++
	id = strconv.FormatInt(c.last, 10)
	if c.pending == nil {
		ch <- reply{err: ErrClosed}
	} else {
		c.pending[id] = &call{done: ch, answered: answered}
	}
	return id, ch
}

// take removes the call id, nil if there is none.
func (c *calls) take(id string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.pending[id]
	delete(c.pending, id)
	if taken != nil && taken.done == nil {
		c.givenUp = slices.DeleteFunc(c.givenUp, func(given string) bool { return given == id })
	}
	return taken
}

// resolve gives the call id its reply, which was read just now. It reports whether there was such a call.
func (c *calls) resolve(id string, r reply) bool {
	resolved := c.take(id)
	if resolved == nil {
		return false
	}
	if resolved.answered != nil {
		resolved.answered(r.result, r.err)
	}
	if resolved.done != nil {
		resolved.done <- r
	}
	return resolved.done != nil
}

// fail gives the call id an error that no peer has sent.
func (c *calls) fail(id string, err error) {
	if failed := c.take(id); failed != nil {
		failed.done <- reply{err: err}
	}
}

// giveUp says that nobody waits for the call id any more. It reports whether it was unanswered. One with
// a callback is kept: its late response is still of interest, but for the oldest where there are too many.
func (c *calls) giveUp(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	given, unanswered := c.pending[id]
	switch {
	case !unanswered:
	case given.answered == nil:
		delete(c.pending, id)
	default:
		given.done = nil
		c.givenUp = append(c.givenUp, id)
		if len(c.givenUp) > c.maxGivenUp {
			delete(c.pending, c.givenUp[0])
			c.givenUp = c.givenUp[1:]
		}
	}
	return unanswered
}

// end gives all calls, now and later, ErrClosed.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ended := range c.pending {
		if ended.done != nil {
			ended.done <- reply{err: ErrClosed}
		}
	}
	c.pending, c.givenUp = nil, nil
}

// Question is a request to be sent.
type Question struct {
	Method string
	// Params are sent as they are, nil for none.
	Params json.RawMessage
	// Answered, if set, is called on the read loop when the response is read: after everything that the peer
	// sent before it was accepted, and before anything behind it is. It is called before Work returns,
	// and also for a response that comes after Work gave up; not if the connection ends first, or
	// [Options].MaxGivenUp others were given up since. It must not wait for anything that takes a message to happen.
	Answered func(result json.RawMessage, err error)
}

// Call is [Conn.Ask] for a request about whose response nobody needs to know more than Work returns.
func (c *Conn) Call(ctx context.Context, method string, params json.RawMessage) Work {
	return c.Ask(ctx, Question{Method: method, Params: params})
}

// Ask queues a request, in the order of the calls and without blocking. Work waits for the response and
// returns its result, or the peer's error as an *Error. It is called once. If the queue is full Work
// returns [ErrQueueFull], if the connection ended [ErrClosed]. When ctx ends first, the peer is
// sent $/cancel_request and Work returns ctx's cause; the late response is ignored, but for
// Answered.
func (c *Conn) Ask(ctx context.Context, q Question) Work {
	if ctx.Err() != nil {
		return failed(context.Cause(ctx))
	}
	id, done := c.calls.add(q.Answered)
	m := outgoing{id: id, method: q.Method, payload: q.Params}
	if err := c.queue.try(m, c.queue.limit); err != nil {
		c.calls.fail(id, err)
	}
	return func() (json.RawMessage, error) {
		select {
		case r := <-done:
			return r.result, r.err
		case <-ctx.Done():
			if c.calls.giveUp(id) {
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

// Force is Post that the bound of the queue does not stop. It is for what is small, rare and must not be lost,
// such as a cancellation. It fails with [ErrClosed] alone.
func (c *Conn) Force(method string, params json.RawMessage) error {
	return c.queue.force(outgoing{method: method, payload: params})
}

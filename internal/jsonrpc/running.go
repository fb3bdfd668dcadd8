package jsonrpc

import (
	"context"
	"sync"
)

// running is the incoming messages that are being worked on.
type running struct {
	slots    chan struct{} // one is held for each
	maxBytes int           // of the params of requests

	mu       sync.Mutex
	requests map[string]*accepted // unanswered, by the key of their id
	bytes    int                  // of their params
	count    int                  // holds
	ending   bool
	idle     chan struct{} // closed when ending and nothing holds
}

// accepted is a request that is not answered yet.
type accepted struct {
	id     ID
	bytes  int
	cancel context.CancelCauseFunc
}

func newRunning(limit, maxBytes int) *running {
	return &running{
		slots:    make(chan struct{}, limit),
		maxBytes: maxBytes,
		requests: make(map[string]*accepted),
		idle:     make(chan struct{}),
	}
}

// hold keeps idle from being closed until release. It returns false, and holds nothing, if the connection is ending.
func (r *running) hold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return false
	}
	r.count++
	return true
}

func (r *running) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count--
	if r.ending && r.count == 0 {
		close(r.idle)
	}
}

// enter waits until one more may run, and holds. It returns false if the connection is ending, which ends ctx.
func (r *running) enter(ctx context.Context) bool {
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

// leave undoes enter.
func (r *running) leave() {
	<-r.slots
	r.release()
}

// add notes a request, or says why it is refused.
func (r *running) add(e envelope, cancel context.CancelCauseFunc) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, n := e.id.key(), len(e.params)
	if _, taken := r.requests[key]; taken {
		return Errorf(CodeInvalidRequest, "a request with this id is not answered yet")
	}
	if r.bytes > 0 && r.bytes+n > r.maxBytes {
		return Errorf(CodeInternal, "the requests that are not answered yet are %d bytes long, and %d more are over the limit of %d: wait for an answer",
			r.bytes, n, r.maxBytes)
	}
	r.requests[key] = &accepted{id: e.id, bytes: n, cancel: cancel}
	r.bytes += n
	return nil
}

// claim gives the caller, and nobody else, the right to answer request id.
func (r *running) claim(id ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := id.key()
	a, unanswered := r.requests[key]
	if unanswered {
		delete(r.requests, key)
		r.bytes -= a.bytes
	}
	return unanswered
}

// claimAll claims all requests.
func (r *running) claimAll() []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []ID
	for _, a := range r.requests {
		all = append(all, a.id)
	}
	clear(r.requests)
	r.bytes = 0
	return all
}

// cancel ends the context of request id. It reports whether it is running.
func (r *running) cancel(id ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, unanswered := r.requests[id.key()]
	if unanswered {
		a.cancel(ErrRequestCancelled)
	}
	return unanswered
}

// end lets nothing more hold, and returns a channel that is closed when nothing does.
func (r *running) end() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ending {
		r.ending = true
		if r.count == 0 {
			close(r.idle)
		}
	}
	return r.idle
}

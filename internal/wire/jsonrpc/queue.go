package jsonrpc

import (
	"cmp"
	"context"
	"math"
	"sync"
)

// keepBuffer is the largest buffer to keep for reuse, in bytes, so that one large message does not
// hold memory for ever.
const keepBuffer = 1 << 20

// queue holds the messages to be written, in order. It is bounded in bytes, with a limit for each
// kind of sender: a message is accepted while fewer bytes than its limit are queued.
type queue struct {
	limit  int // for calls, responses and TryNotify
	stream int // for Notify; lower, so that a stream of notifications leaves room for the others

	mu      sync.Mutex
	next    *Messages     // not yet taken by the writer
	spare   *Messages     // the buffer for those after them; nil if there is none
	writing int           // bytes taken by the writer
	room    chan struct{} // closed when there may be room again; nil if nothing waits
	closed  bool          // try fails
	ready   sync.Cond     // signals the writer: a message or closed
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit, stream: max(1, limit/256), next: &Messages{}}
	q.ready.L = &q.mu
	return q
}

// try queues m, or returns ErrQueueFull if limit bytes are queued.
func (q *queue) try(m outgoing, limit int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case q.sizeLocked() >= limit:
		return ErrQueueFull
	}
	q.next.add(&m)
	q.ready.Signal()
	return nil
}

// force queues m even over the limit.
func (q *queue) force(m outgoing) error { return q.try(m, math.MaxInt) }

// wait queues m once fewer than limit bytes are queued. It returns ctx's cause if ctx ends first.
func (q *queue) wait(ctx context.Context, m outgoing, limit int) error {
	for {
		if err := q.try(m, limit); err != ErrQueueFull {
			return err
		}
		if err := q.await(ctx, limit); err != nil {
			return err
		}
	}
}

// await waits until a message with the limit would be queued or fail at once. It returns ctx's
// cause if ctx ends first.
func (q *queue) await(ctx context.Context, limit int) error {
	for full := q.full(limit); full != nil; full = q.full(limit) {
		select {
		case <-full:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// full returns nil if a message with the limit would be queued or fail at once, otherwise a channel
// that is closed when that may have changed.
func (q *queue) full(limit int) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.sizeLocked() < limit {
		return nil
	}
	if q.room == nil {
		q.room = make(chan struct{})
	}
	return q.room
}

// sizeLocked returns the number of queued bytes.
func (q *queue) sizeLocked() int { return q.next.size + q.writing }

// close makes try fail and wakes all waiters. The writer continues until the queue is empty.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wakeLocked()
	q.ready.Signal()
}

func (q *queue) wakeLocked() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// writeTo writes queued messages to t, all at once, until the queue is closed and empty or t fails.
func (q *queue) writeTo(ctx context.Context, t Transport, tap Tap) error {
	for {
		messages := q.take()
		if messages.size == 0 {
			return nil
		}
		if tap != nil {
			for m := range messages.All() {
				tap(true, m)
			}
		}
		err := t.Write(ctx, messages)
		q.written(messages)
		if err != nil {
			q.close()
			return err
		}
	}
}

// take waits for messages and returns all of them, or none when the queue is closed and empty.
func (q *queue) take() *Messages {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.next.size == 0 && !q.closed {
		q.ready.Wait()
	}
	messages := q.next
	q.next, q.spare = cmp.Or(q.spare, &Messages{}), nil
	q.writing = messages.size
	return messages
}

// written records that messages have been written, and keeps their buffer for reuse.
func (q *queue) written(messages *Messages) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing = 0
	if messages.reset(); cap(messages.pieces[0]) <= keepBuffer {
		q.spare = messages
	}
	q.wakeLocked()
}

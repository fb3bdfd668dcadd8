package jsonrpc

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// keepBuffer is the largest buffer to keep for reuse, so that one large message does not hold
// memory for ever.
const keepBuffer = 1 << 20

// queue holds the lines to be written, in order. It is bounded in bytes, with a limit for each kind
// of sender: a line is accepted while fewer bytes than its limit are queued.
type queue struct {
	limit  int // for calls, responses and TryNotify
	stream int // for Notify; lower, so that a stream of notifications leaves room for the others
	unsent int // for the responses that wait until they are below limit, in bytes

	mu      sync.Mutex
	waiting int           // bytes of these responses
	lines   []byte        // not yet taken by the writer
	spare   []byte        // the buffer for the next lines
	writing int           // bytes taken by the writer
	room    chan struct{} // closed when there may be room again; nil if nothing waits
	closed  bool          // put fails
	ready   sync.Cond     // signals the writer: lines or closed
}

func newQueue(limit, unsent int) *queue {
	q := &queue{limit: limit, stream: max(1, limit/256), unsent: unsent}
	q.ready.L = &q.mu
	return q
}

// try queues m, or returns ErrQueueFull if limit bytes are queued.
func (q *queue) try(m outgoing, limit int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.put(&m, limit)
}

// force queues m even over the limit.
func (q *queue) force(m outgoing) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.put(&m, q.limit+len(q.lines)+q.writing)
}

// wait queues m once fewer than limit bytes are queued. It returns ctx's cause if ctx ends first.
func (q *queue) wait(ctx context.Context, m outgoing, limit int) error {
	for {
		q.mu.Lock()
		err := q.put(&m, limit)
		if err != ErrQueueFull {
			q.mu.Unlock()
			return err
		}
		room := q.roomLocked()
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reserve reports whether a response of this size may wait. A single one always may, and unreserve
// must follow.
func (q *queue) reserve(size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting > 0 && q.waiting+size > q.unsent {
		return false
	}
	q.waiting += size
	return true
}

// unreserve undoes reserve.
func (q *queue) unreserve(size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting -= size
}

// awaitRoom waits until a response can be queued or the queue is closed.
func (q *queue) awaitRoom() {
	for {
		q.mu.Lock()
		if q.closed || !q.full(q.limit) {
			q.mu.Unlock()
			return
		}
		room := q.roomLocked()
		q.mu.Unlock()
		<-room
	}
}

// roomLocked returns a channel that is closed when there may be room.
func (q *queue) roomLocked() <-chan struct{} {
	if q.room == nil {
		q.room = make(chan struct{})
	}
	return q.room
}

func (q *queue) full(limit int) bool { return len(q.lines)+q.writing >= limit }

func (q *queue) put(m *outgoing, limit int) error {
	switch {
	case q.closed:
		return ErrClosed
	case q.full(limit):
		return ErrQueueFull
	}
	q.lines = m.appendTo(grow(q.lines, m.size()))
	q.ready.Signal()
	return nil
}

// grow makes room for n more bytes in one step.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	return append(make([]byte, 0, max(2*cap(b), len(b)+n)), b...)
}

// close makes put fail and wakes all waiters. The writer continues until the queue is empty.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
	q.ready.Signal()
}

func (q *queue) wake() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// writeTo writes queued lines to out, as many at once as there are, until the queue is closed and
// empty or out fails. It tells m how long they were.
func (q *queue) writeTo(out io.Writer, tap Tap, m *memory) error {
	for {
		lines := q.take()
		if len(lines) == 0 {
			return nil
		}
		if tap != nil {
			for line := range bytes.Lines(lines) {
				tap(Sent, line[:len(line)-1])
			}
		}
		_, err := out.Write(lines)
		q.written(lines)
		m.release(cap(lines))
		if err != nil {
			q.close()
			return err
		}
	}
}

// take waits for lines and returns all of them, or none when the queue is closed and empty.
func (q *queue) take() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 && !q.closed {
		q.ready.Wait()
	}
	lines := q.lines
	q.lines, q.spare = q.spare[:0], nil
	q.writing = len(lines)
	return lines
}

// written records that lines have been written, and keeps the buffer for reuse.
func (q *queue) written(lines []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing = 0
	if cap(lines) <= keepBuffer {
		q.spare = lines
	}
	q.wake()
}

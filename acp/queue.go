package acp

import (
	"context"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// queue keeps the requests of one session id in arrival order. The read loop takes a ticket for each of them, and one ticket
// at a time holds the queue: a prompt until its turn has begun, a call until the backend has it, a lifecycle request until
// its response was sent. The queue also knows the active session and its running turn, because calls pass a running turn and
// lifecycle requests end it.
type queue struct {
	id     sessionstore.ID
	queues *queues

	mu      sync.Mutex
	line    []*ticket
	session *session // the active session, nil if there is none
	turn    *turn    // the running turn, nil if there is none
}

// requestKind is the kind of request that a ticket is for.
type requestKind int

const (
	callRequest requestKind = iota
	promptRequest
	lifecycleRequest
)

// ticket is the position of a request in its queue.
type ticket struct {
	queue   *queue
	kind    requestKind
	turn    *turn         // of a prompt
	first   chan struct{} // closed when the ticket holds the queue
	dropped sync.Once
}

func (q *queue) ticketLocked(kind requestKind, t *turn) *ticket {
	at := &ticket{queue: q, kind: kind, turn: t, first: make(chan struct{})}
	q.line = append(q.line, at)
	if len(q.line) == 1 {
		close(at.first)
	}
	return at
}

func (q *queue) ticket(kind requestKind) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ticketLocked(kind, nil)
}

func (q *queue) promptTicket(t *turn) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if before := q.precedingTurnLocked(); before != nil && before.blocks() {
		return nil, errTurnInProgress(q.id)
	}
	return q.ticketLocked(promptRequest, t), nil
}

// precedingTurnLocked returns the turn that a new prompt would directly follow, nil if it would follow a lifecycle request.
func (q *queue) precedingTurnLocked() *turn {
	for _, at := range slices.Backward(q.line) {
		switch at.kind {
		case promptRequest:
			return at.turn
		case lifecycleRequest:
			return nil
		}
	}
	return q.turn
}

// cancel ends the running turn and every turn in the queue. It does not wait in line.
func (q *queue) cancel(params backend.Raw) {
	q.mu.Lock()
	var turns []*turn
	if q.turn != nil {
		turns = append(turns, q.turn)
	}
	for _, at := range q.line {
		if at.turn != nil && at.turn != q.turn {
			turns = append(turns, at.turn)
		}
	}
	q.mu.Unlock()
	for _, t := range turns {
		t.end(backend.ErrCancelled, params)
	}
}

// active returns the active session, nil if there is none.
func (q *queue) active() *session {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.session
}

func (q *queue) activate(s *session) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.session = s
}

// deactivate reports whether s was the active session. Afterwards it no longer is.
func (q *queue) deactivate(s *session) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.session != s {
		return false
	}
	q.session = nil
	return true
}

// running returns the running turn, nil if there is none.
func (q *queue) running() *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.turn
}

func (q *queue) setRunning(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turn = t
}

// answered notes that t, which may be the running turn, was answered.
func (q *queue) answered(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turn == t {
		q.turn = nil
	}
}

// endTurn ends the running turn, if there is one, and waits until its prompt was answered.
func (q *queue) endTurn(ctx context.Context, cause error) error {
	t := q.running()
	if t == nil {
		return nil
	}
	t.end(cause, nil)
	return t.wait(ctx)
}

// idle reports whether nothing refers to the queue any more.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.line) == 0 && q.session == nil && q.turn == nil
}

// holds reports whether the ticket holds the queue.
func (at *ticket) holds() bool {
	select {
	case <-at.first:
		return true
	default:
		return false
	}
}

// acquire waits until the ticket holds the queue, or ctx ends.
func (at *ticket) acquire(ctx context.Context) error {
	if at.holds() {
		return nil
	}
	select {
	case <-at.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release gives up the ticket, whether it holds the queue or still waits. It may be called more than once.
func (at *ticket) release() {
	at.dropped.Do(func() {
		q := at.queue
		q.mu.Lock()
		defer q.mu.Unlock()
		i := slices.Index(q.line, at)
		q.line = slices.Delete(q.line, i, i+1)
		if i == 0 && len(q.line) > 0 {
			close(q.line[0].first)
		}
	})
	at.queue.queues.forget(at.queue)
}

// queues are the queues of a connection, one for each session id in use.
type queues struct {
	mu     sync.Mutex
	byID   map[sessionstore.ID]*queue
	closed bool
}

// ticket returns a ticket at the end of id's queue. It is called on the read loop.
func (qs *queues) ticket(id sessionstore.ID, kind requestKind) *ticket {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.getLocked(id).ticket(kind)
}

// promptTicket returns a ticket for a prompt. It fails if another turn is running or waiting and nothing in between ends it.
func (qs *queues) promptTicket(id sessionstore.ID, t *turn) (*ticket, error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.getLocked(id).promptTicket(t)
}

func (qs *queues) getLocked(id sessionstore.ID) *queue {
	q := qs.byID[id]
	if q == nil {
		q = &queue{id: id, queues: qs}
		if qs.byID == nil {
			qs.byID = make(map[sessionstore.ID]*queue)
		}
		qs.byID[id] = q
	}
	return q
}

// find returns id's queue, nil if it has none.
func (qs *queues) find(id sessionstore.ID) *queue {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byID[id]
}

// activeIDs returns the ids of the active sessions.
func (qs *queues) activeIDs() []sessionstore.ID {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	var ids []sessionstore.ID
	for id, q := range qs.byID {
		if q.active() != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// forget drops q if it is idle.
func (qs *queues) forget(q *queue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.byID[q.id] == q && q.idle() {
		delete(qs.byID, q.id)
	}
}

// activate makes s the active session of its queue. It reports false after close.
func (qs *queues) activate(s *session) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !qs.closed {
		s.queue.activate(s)
	}
	return !qs.closed
}

// isClosed reports whether close was called.
func (qs *queues) isClosed() bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.closed
}

// close returns the active sessions. No other session can become active afterwards.
func (qs *queues) close() []*session {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.closed = true
	var active []*session
	for _, q := range qs.byID {
		if s := q.active(); s != nil {
			active = append(active, s)
		}
	}
	return active
}

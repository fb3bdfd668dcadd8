package acp

import (
	"context"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// queue keeps the requests of one session id in arrival order. The read loop takes a ticket for
// each of them, and one ticket at a time holds the queue: a prompt until its turn has begun, a
// passed request until the backend has it, a lifecycle request until its response was sent. The
// queue also knows the active session and its turns, because passed requests overtake running turns
// and lifecycle requests end them.
type queue struct {
	id     sessionstore.ID
	queues *queues

	mu      sync.Mutex
	line    []*ticket
	session *session // the active session, or nil
	turns   []*turn  // whose prompts have held the queue and were not answered, in this order
}

// requestKind is the kind of request that a ticket is for.
type requestKind int

const (
	passedRequest requestKind = iota // passed on to the backend, or about a stored session
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

// promptTicket takes a ticket for t. It fails if limit turns before t are not over yet; 0 means no
// limit.
func (q *queue) promptTicket(t *turn, limit int) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !fits(q.precedingTurnsLocked(), limit) {
		return nil, errTurnInProgress(q.id)
	}
	return q.ticketLocked(promptRequest, t), nil
}

// fits reports whether another prompt may follow the turns: fewer than limit of them are not over.
// 0 means no limit.
func fits(turns []*turn, limit int) bool {
	blocking := 0
	for _, t := range turns {
		if t.blocks() {
			blocking++
		}
	}
	return limit == 0 || blocking < limit
}

// precedingTurnsLocked returns the turns that a new prompt would follow: those since the last
// lifecycle request in the line.
func (q *queue) precedingTurnsLocked() (turns []*turn) {
	for _, at := range slices.Backward(q.line) {
		switch {
		case at.kind == lifecycleRequest:
			return turns
		case at.waitingTurn():
			turns = append(turns, at.turn)
		}
	}
	return append(turns, q.turns...)
}

// cancel ends all turns, including those that still wait in the line. It does not wait.
func (q *queue) cancel(params backend.Raw) {
	q.mu.Lock()
	turns := slices.Clone(q.turns)
	for _, at := range q.line {
		if at.waitingTurn() {
			turns = append(turns, at.turn)
		}
	}
	q.mu.Unlock()
	endTurns(turns, backend.ErrCancelled, params)
}

// active returns the active session, or nil.
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

// unanswered returns the turns whose prompts have held the queue and were not answered, in this
// order.
func (q *queue) unanswered() []*turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.turns)
}

// enter adds t, whose ticket holds the queue, and returns the turns before it.
func (q *queue) enter(t *turn) (before []*turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before = slices.Clone(q.turns)
	q.turns = append(q.turns, t)
	t.entered = true
	return before
}

// answered notes that t was answered.
func (q *queue) answered(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns = slices.DeleteFunc(q.turns, func(other *turn) bool { return other == t })
}

// endTurns ends the turns, if there are any, and waits until their prompts were answered. The
// caller's ticket holds the queue, so that no turn follows.
func (q *queue) endTurns(ctx context.Context, cause error) error {
	turns := q.unanswered()
	endTurns(turns, cause, nil)
	for _, t := range turns {
		if err := t.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// idle reports whether nothing refers to the queue any more.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.line) == 0 && q.session == nil && len(q.turns) == 0
}

// waitingTurn reports whether the ticket belongs to a turn that was not entered. The queue is
// locked.
func (at *ticket) waitingTurn() bool { return at.turn != nil && !at.turn.entered }

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

// release gives up the ticket, whether it holds the queue or still waits. It may be called more
// than once.
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

// promptTicket returns a ticket for a prompt. It fails if limit turns are already running or
// waiting, and no request in between ends them; 0 means no limit.
func (qs *queues) promptTicket(id sessionstore.ID, t *turn, limit int) (*ticket, error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.getLocked(id).promptTicket(t, limit)
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

// active returns the active sessions.
func (qs *queues) active() []*session {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.activeLocked()
}

func (qs *queues) activeLocked() (active []*session) {
	for _, q := range qs.byID {
		if s := q.active(); s != nil {
			active = append(active, s)
		}
	}
	return active
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
	return qs.activeLocked()
}

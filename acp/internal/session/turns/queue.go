package turns

import (
	"context"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Queue keeps the requests of one session id in arrival order, whoever sends them. The read loop of
// a connection takes a ticket for each of them, and one ticket at a time holds the queue: a prompt
// until its turn has begun, a passed request until the backend has it, a lifecycle request until
// its response was sent. The queue also knows the active session and its turns, because passed
// requests overtake running turns and lifecycle requests end them.
type Queue[S, C comparable] struct {
	ID     sessionstore.ID
	queues *Queues[S, C]

	// Guarded by the mutex of queues:
	line    []*Ticket[S, C]
	active  S               // the active session, or zero
	prompts []*Ticket[S, C] // that have held the queue and were not answered, in this order
}

// RequestKind is the kind of request that a ticket is for.
type RequestKind int

// The kinds of requests.
const (
	Ordinary  RequestKind = iota // neither of the following, such as a rename
	Lifecycle                    // opens, closes or deletes a session
	prompt                       // has a turn
)

// Ticket is the position of a request in its queue.
type Ticket[S, C comparable] struct {
	Queue  *Queue[S, C]
	kind   RequestKind
	sender C             // zero for a request of nobody, which the program makes itself
	turn   *Turn         // of a prompt
	first  chan struct{} // closed when the ticket holds the queue

	// Guarded by the mutex of the queues:
	narrow  bool // it holds back only its sender
	entered bool // it is among the prompts of the queue, or was
}

func (q *Queue[S, C]) ticketLocked(kind RequestKind, from C, t *Turn) *Ticket[S, C] {
	at := &Ticket[S, C]{Queue: q, kind: kind, sender: from, turn: t, first: make(chan struct{})}
	q.line = append(q.line, at)
	q.advanceLocked()
	return at
}

// lock locks the queue, together with all others, and returns a function that unlocks it.
func (q *Queue[S, C]) lock() (unlock func()) {
	q.queues.mu.Lock()
	return q.queues.mu.Unlock
}

// Narrow lets the requests of others overtake the ticket, which holds the queue. From now on it
// holds back only those of its sender. Until it is released, nothing that it waits for may take a
// ticket of the same sender.
func (at *Ticket[S, C]) Narrow() {
	q := at.Queue
	defer q.lock()()
	at.narrow = true
	q.advanceLocked()
}

// advanceLocked lets the first ticket that nothing holds back hold the queue, if none does.
func (q *Queue[S, C]) advanceLocked() {
	var next *Ticket[S, C]
	for _, at := range q.line {
		switch {
		case at.narrow:
		case at.Holds():
			return
		case next == nil && !q.heldBackLocked(at.sender):
			next = at
		}
	}
	if next != nil {
		close(next.first)
	}
}

// heldBackLocked reports whether a narrow ticket holds back the requests of a sender.
func (q *Queue[S, C]) heldBackLocked(from C) bool {
	return slices.ContainsFunc(q.line, func(at *Ticket[S, C]) bool {
		return at.narrow && at.sender == from
	})
}

// IsOpening reports whether a lifecycle request of the sender is in the line.
func (q *Queue[S, C]) IsOpening(from C) bool {
	defer q.lock()()
	return slices.ContainsFunc(q.line, func(at *Ticket[S, C]) bool {
		return at.kind == Lifecycle && at.sender == from
	})
}

// TooManyError says that a prompt was rejected, because too many turns of the session are
// unanswered.
type TooManyError struct{ ID sessionstore.ID }

func (e *TooManyError) Error() string { return "a turn is running in session " + string(e.ID) }

// fits reports whether another prompt may follow the turns: fewer than limit of them are not over.
// 0 means no limit.
func fits(turns []*Turn, limit int) bool {
	blocking := 0
	for _, t := range turns {
		if t.blocks() {
			blocking++
		}
	}
	return limit == 0 || blocking < limit
}

// precedingTurnsLocked returns the turns that a new prompt of the sender would follow: those since
// the last lifecycle request in the line. A request that is held back is behind it, unless it is of
// the same sender. While no session is active, prompts of other senders do not count, because they
// cannot be about a session that this one knows.
func (q *Queue[S, C]) precedingTurnsLocked(from C) (preceding []*Turn) {
	isNone := q.active == *new(S)
	for _, at := range slices.Backward(q.line) {
		switch isOthers := at.sender != from; {
		case at.narrow, isOthers && q.heldBackLocked(at.sender):
		case at.kind == Lifecycle:
			return preceding
		case at.waitingTurnLocked() && !(isOthers && isNone):
			preceding = append(preceding, at.turn)
		}
	}
	return append(preceding, q.turnsLocked()...)
}

// turnsLocked returns the turns of the prompts.
func (q *Queue[S, C]) turnsLocked() (turns []*Turn) {
	for _, at := range q.prompts {
		turns = append(turns, at.turn)
	}
	return turns
}

// Cancel ends the turns of the senders that are chosen, including those that still wait in the
// line. It does not wait.
func (q *Queue[S, C]) Cancel(params backend.Raw, chosen func(sender C) bool) {
	unlock := q.lock()
	waiting := slices.DeleteFunc(slices.Clone(q.line),
		func(at *Ticket[S, C]) bool { return !at.waitingTurnLocked() })
	prompts := slices.Concat(q.prompts, waiting)
	unlock()
	var all []*Turn
	for _, at := range prompts {
		if chosen(at.sender) {
			all = append(all, at.turn)
		}
	}
	End(all, backend.ErrCancelled, params)
}

// Active returns the active session, or zero.
func (q *Queue[S, C]) Active() S {
	defer q.lock()()
	return q.active
}

// Deactivate reports whether s was the active session. Afterwards it no longer is.
func (q *Queue[S, C]) Deactivate(s S) bool {
	defer q.lock()()
	if q.active != s {
		return false
	}
	q.active = *new(S)
	return true
}

// Unanswered returns the turns whose prompts have held the queue and were not answered, in this
// order.
func (q *Queue[S, C]) Unanswered() []*Turn {
	defer q.lock()()
	return q.turnsLocked()
}

// Runs reports whether a turn is running that was not told to end and whose response is not
// decided.
func (q *Queue[S, C]) Runs() bool { return slices.ContainsFunc(q.Unanswered(), (*Turn).blocks) }

// AwaitTurn waits until the turn of a prompt may run. The ticket holds the queue. A turn that is
// exclusive, or follows an exclusive one, runs once all earlier prompts were answered; AwaitTurn
// releases the ticket before it waits for them, because later requests need not wait. Every turn
// waits for the response of a turn that is ending. limit is as for [Queues.PromptTicket]. overlaps
// reports whether other turns are running.
func (at *Ticket[S, C]) AwaitTurn(limit int) (overlaps bool, err error) {
	q, t := at.Queue, at.turn
	before := at.enter()
	// a lifecycle request between them and t may have failed before it ended them
	if !fits(before, limit) {
		return false, &TooManyError{q.ID}
	}
	for _, earlier := range before {
		if earlier.blocks() {
			if !t.Exclusive && !earlier.Exclusive {
				overlaps = true
				continue
			}
			if !t.Exclusive { // so at still holds the queue: those behind it must not overtake it
				t.Exclusive = true
			}
			at.Release()
		}
		if err := earlier.Wait(t.ctx); err != nil {
			return false, err
		}
	}
	return overlaps, nil
}

// enter adds the ticket, which holds the queue, to the prompts, and returns the turns before it.
func (at *Ticket[S, C]) enter() (before []*Turn) {
	q := at.Queue
	defer q.lock()()
	before = q.turnsLocked()
	q.prompts = append(q.prompts, at)
	at.entered = true
	return before
}

// Answered notes that the prompt was answered.
func (at *Ticket[S, C]) Answered() {
	q := at.Queue
	defer q.lock()()
	q.prompts = slices.DeleteFunc(q.prompts,
		func(other *Ticket[S, C]) bool { return other == at })
}

// EndTurns ends the turns, if there are any, and waits until their prompts were answered. The
// caller's ticket holds the queue, so that no turn follows.
func (q *Queue[S, C]) EndTurns(ctx context.Context, cause error) error {
	all := q.Unanswered()
	End(all, cause, nil)
	for _, t := range all {
		if err := t.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitingTurnLocked reports whether the ticket belongs to a turn that was not entered.
func (at *Ticket[S, C]) waitingTurnLocked() bool { return at.turn != nil && !at.entered }

// Holds reports whether the ticket holds the queue.
func (at *Ticket[S, C]) Holds() bool {
	select {
	case <-at.first:
		return true
	default:
		return false
	}
}

// Acquire waits until the ticket holds the queue, or ctx ends.
func (at *Ticket[S, C]) Acquire(ctx context.Context) error {
	if at.Holds() {
		return nil
	}
	select {
	case <-at.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release gives up the ticket, whether it holds the queue or still waits. It may be called more
// than once.
func (at *Ticket[S, C]) Release() {
	q := at.Queue
	defer q.lock()()
	if i := slices.Index(q.line, at); i >= 0 {
		q.line = slices.Delete(q.line, i, i+1)
		q.advanceLocked()
	}
	if len(q.line) == 0 && q.active == *new(S) && len(q.prompts) == 0 && q.queues.byID[q.ID] == q {
		delete(q.queues.byID, q.ID) // nothing refers to it any more
	}
}

// Queues are queues, one for each session id in use. The zero value has none.
type Queues[S, C comparable] struct {
	mu     sync.Mutex
	byID   map[sessionstore.ID]*Queue[S, C]
	closed bool
}

// Ticket returns a ticket at the end of id's queue. For requests of a sender it is called on the
// read loop.
func (qs *Queues[S, C]) Ticket(id sessionstore.ID, kind RequestKind, from C) *Ticket[S, C] {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.getLocked(id).ticketLocked(kind, from, nil)
}

// PromptTicket returns a ticket for the sender's prompt of t. It returns a [TooManyError] if limit turns are
// already running or waiting, and no request in between ends them; 0 means no limit.
func (qs *Queues[S, C]) PromptTicket(
	id sessionstore.ID, from C, t *Turn, limit int,
) (*Ticket[S, C], error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.getLocked(id)
	if !fits(q.precedingTurnsLocked(from), limit) {
		return nil, &TooManyError{id}
	}
	return q.ticketLocked(prompt, from, t), nil
}

func (qs *Queues[S, C]) getLocked(id sessionstore.ID) *Queue[S, C] {
	q := qs.byID[id]
	if q == nil {
		q = &Queue[S, C]{ID: id, queues: qs}
		if qs.byID == nil {
			qs.byID = make(map[sessionstore.ID]*Queue[S, C])
		}
		qs.byID[id] = q
	}
	return q
}

// Find returns id's queue, nil if it has none.
func (qs *Queues[S, C]) Find(id sessionstore.ID) *Queue[S, C] {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byID[id]
}

// Active returns the active sessions.
func (qs *Queues[S, C]) Active() (active []S) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, q := range qs.byID {
		if q.active != *new(S) {
			active = append(active, q.active)
		}
	}
	return active
}

// Activate makes s the active session of q. It reports false after Close.
func (qs *Queues[S, C]) Activate(q *Queue[S, C], s S) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !qs.closed {
		q.active = s
	}
	return !qs.closed
}

// IsClosed reports whether close was called.
func (qs *Queues[S, C]) IsClosed() bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.closed
}

// Close makes Activate fail from now on.
func (qs *Queues[S, C]) Close() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.closed = true
}

// Package turns decides in which order the requests of a session are served, when the turn of a
// prompt begins and ends, and which clients are shown the session and asked.
//
// It knows neither sessions nor clients, only what it needs of them. Package acp has both:
//
//   - queue.go and ticket.go: the [Queues] of a user, a [Queue] for each session id, and a [Ticket]
//     for each request, of all connections. The active sessions, of the type S, and the clients
//     that send requests are only stored and compared.
//   - turn.go: a [Turn] is a prompt from its arrival to its response. A [Session] gives the backend
//     the prompt, and tells it when the turn ends early. An [Outcome] says how it has ended.
//   - viewers.go: the [Viewers] of a session are the [Client]s that have it open.
//   - poll.go: a [Poll] asks a question in all of them, until one answers.
//
// # Locks
//
// Queues.mu comes before Turn.mu. Viewers.mu is taken alone, or while a message is sent to one
// viewer (viewer.sending). All are held for a few statements; nothing of another package is called
// meanwhile, except the end of a context, Client.HasLeft, Client.Room and ViewerOptions.Go.
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
//
// What waits for what:
//
//   - A request waits for those before it, until they are released. It does not wait for a client
//     that joins (a ticket that has stepped aside), nor for what that client has sent since, unless
//     it is of the same client.
//   - A turn waits for earlier turns that are ending; for all earlier ones if it is exclusive, or
//     if one of them is exclusive or waits.
//   - A session/cancel takes no ticket.
type Queue[S any] struct {
	ID     sessionstore.ID
	queues *Queues[S]

	// Guarded by the mutex of queues:
	line    []*Ticket[S] // that were not released, in the order in which they came
	prompts []*Ticket[S] // that hold the queue or have held it, and were not answered
	active  *S           // the active session, or nil
}

// lock locks the queue, together with all others, and returns a function that unlocks it.
func (q *Queue[S]) lock() (unlock func()) {
	q.queues.mu.Lock()
	return q.queues.mu.Unlock
}

// addLocked adds a ticket at the end of the line.
func (q *Queue[S]) addLocked(kind RequestKind, sender any, t *Turn) *Ticket[S] {
	at := &Ticket[S]{Queue: q, kind: kind, sender: sender, turn: t, held: make(chan struct{})}
	q.line = append(q.line, at)
	q.advanceLocked()
	return at
}

// advanceLocked lets the next ticket hold the queue, if none does.
func (q *Queue[S]) advanceLocked() {
	next := nextOf(q.line)
	if next == nil {
		return
	}
	next.place = holding
	close(next.held)
	if next.turn != nil {
		q.prompts = append(q.prompts, next)
	}
}

// removeLocked removes a ticket from the line, if it is there, and the queue if nothing refers to
// it any more.
func (q *Queue[S]) removeLocked(at *Ticket[S]) {
	at.place = released
	q.line = without(q.line, at)
	q.advanceLocked()
	isUnused := len(q.line) == 0 && len(q.prompts) == 0 && q.active == nil
	if isUnused && q.queues.byID[q.ID] == q {
		delete(q.queues.byID, q.ID)
	}
}

// without returns the tickets but at, in the same memory.
func without[S any](tickets []*Ticket[S], at *Ticket[S]) []*Ticket[S] {
	return slices.DeleteFunc(tickets, func(other *Ticket[S]) bool { return other == at })
}

// IsOpening reports whether a lifecycle request of the sender is in the line.
func (q *Queue[S]) IsOpening(sender any) bool {
	defer q.lock()()
	return slices.ContainsFunc(q.line, func(at *Ticket[S]) bool {
		return at.kind == Lifecycle && at.sender == sender
	})
}

// precedingLocked returns the turns that a new prompt of the sender would follow, unless a lifecycle
// request ends them before. Requests that others overtake count only for their sender. While no
// session is active, prompts of other senders do not count, because they cannot be about a session
// that this one knows.
func (q *Queue[S]) precedingLocked(sender any) (preceding []*Turn) {
	prompts := slices.Clone(q.prompts)
	for _, at := range q.line {
		switch {
		case at.place == aside, at.sender != sender && hasAside(q.line, at.sender):
		case at.kind == Lifecycle:
			prompts = nil
		case at.place == waiting && at.turn != nil:
			prompts = append(prompts, at)
		}
	}
	for _, at := range prompts {
		if at.sender == sender || q.active != nil {
			preceding = append(preceding, at.turn)
		}
	}
	return preceding
}

// Cancel ends the turns of the senders that are chosen, including those that still wait in the
// line. It does not wait.
func (q *Queue[S]) Cancel(params backend.Raw, chosen func(sender any) bool) {
	unlock := q.lock()
	tickets := slices.Concat(q.prompts, q.line) // some twice
	unlock()
	var all []*Turn
	for _, at := range tickets {
		if at.turn != nil && chosen(at.sender) {
			all = append(all, at.turn)
		}
	}
	End(all, backend.ErrCancelled, params)
}

// Active returns the active session, or nil.
func (q *Queue[S]) Active() *S {
	defer q.lock()()
	return q.active
}

// Activate makes s the active session. It reports false after [Queues.Close].
func (q *Queue[S]) Activate(s *S) bool {
	defer q.lock()()
	if !q.queues.closed {
		q.active = s
	}
	return !q.queues.closed
}

// Deactivate reports whether s was the active session. Afterwards it no longer is.
func (q *Queue[S]) Deactivate(s *S) bool {
	defer q.lock()()
	if q.active != s {
		return false
	}
	q.active = nil
	return true
}

// Unanswered returns the turns whose prompts hold the queue or have held it, and were not answered,
// in this order.
func (q *Queue[S]) Unanswered() (turns []*Turn) {
	defer q.lock()()
	for _, at := range q.prompts {
		turns = append(turns, at.turn)
	}
	return turns
}

// Runs reports whether a turn goes on.
func (q *Queue[S]) Runs() bool { return countGoingOn(q.Unanswered()) > 0 }

// EndTurns ends the turns, if there are any, and waits until their prompts were answered. The
// caller's ticket holds the queue, so that no turn follows.
func (q *Queue[S]) EndTurns(ctx context.Context, cause error) error {
	all := q.Unanswered()
	End(all, cause, nil)
	for _, t := range all {
		if err := t.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Queues are queues, one for each session id in use. The zero value has none.
type Queues[S any] struct {
	mu     sync.Mutex
	byID   map[sessionstore.ID]*Queue[S]
	closed bool
}

// Ticket returns a ticket at the end of id's queue. For requests of a sender it is called on the
// read loop.
func (qs *Queues[S]) Ticket(id sessionstore.ID, kind RequestKind, sender any) *Ticket[S] {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.getLocked(id).addLocked(kind, sender, nil)
}

// TooManyError says that a prompt was rejected, because too many turns of the session are
// unanswered.
type TooManyError struct{ ID sessionstore.ID }

func (e *TooManyError) Error() string { return "a turn is running in session " + string(e.ID) }

// PromptTicket returns a ticket for the sender's prompt of t. It returns a [TooManyError] if limit
// turns are already running or waiting, and no request in between ends them; 0 means no limit.
func (qs *Queues[S]) PromptTicket(
	id sessionstore.ID, sender any, t *Turn, limit int,
) (PromptTicket[S], error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.getLocked(id)
	if limit > 0 && countGoingOn(q.precedingLocked(sender)) >= limit {
		return PromptTicket[S]{}, &TooManyError{id}
	}
	return PromptTicket[S]{q.addLocked(Ordinary, sender, t)}, nil
}

func (qs *Queues[S]) getLocked(id sessionstore.ID) *Queue[S] {
	q := qs.byID[id]
	if q == nil {
		q = &Queue[S]{ID: id, queues: qs}
		if qs.byID == nil {
			qs.byID = make(map[sessionstore.ID]*Queue[S])
		}
		qs.byID[id] = q
	}
	return q
}

// Find returns id's queue, nil if it has none.
func (qs *Queues[S]) Find(id sessionstore.ID) *Queue[S] {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byID[id]
}

// Active returns the active sessions.
func (qs *Queues[S]) Active() (active []*S) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, q := range qs.byID {
		if q.active != nil {
			active = append(active, q.active)
		}
	}
	return active
}

// IsClosed reports whether Close was called.
func (qs *Queues[S]) IsClosed() bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.closed
}

// Close makes Activate fail from now on.
func (qs *Queues[S]) Close() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.closed = true
}

package turns

import (
	"context"
	"slices"

	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
)

// Ticket is the place of a request in its queue, until it is released.
type Ticket[S any] struct {
	Queue  *Queue[S]
	kind   RequestKind
	sender any           // nil for a request of nobody, which the program makes itself
	turn   *Turn         // of a [PromptTicket], nil for others
	held   chan struct{} // closed when the ticket holds the queue

	// Guarded by the mutex of the queues:
	place     place
	exclusive bool // no other turn overlaps that of the ticket
}

// PromptTicket is the ticket of a prompt. When it holds the queue, AwaitTurn waits until the turn may
// run; Answered ends that. The prompt remains one of the queue's although the ticket is released.
type PromptTicket[S any] struct{ *Ticket[S] }

// RequestKind is the kind of request that a ticket is for.
type RequestKind int

// The kinds of requests.
const (
	Ordinary  RequestKind = iota // such as a prompt or a rename
	Lifecycle                    // opens, closes or deletes a session
)

// place is where a ticket is.
type place int

const (
	waiting place = iota // in the line
	holding              // the queue
	aside                // has held the queue, and holds back only its sender
	released
)

// nextOf returns the ticket that holds the queue next: the first in the line that waits and whose
// sender has none aside. It returns nil if there is none, or if one holds the queue.
func nextOf[S any](line []*Ticket[S]) (next *Ticket[S]) {
	for _, at := range line {
		switch {
		case at.place == holding:
			return nil
		case at.place == waiting && next == nil && !hasAside(line, at.sender):
			next = at
		}
	}
	return next
}

// hasAside reports whether the sender has a ticket aside.
func hasAside[S any](line []*Ticket[S], sender any) bool {
	return slices.ContainsFunc(line, func(at *Ticket[S]) bool {
		return at.place == aside && at.sender == sender
	})
}

// Holds reports whether the ticket holds the queue.
func (at *Ticket[S]) Holds() bool {
	defer at.Queue.lock()()
	return at.place == holding
}

// Acquire waits until the ticket holds the queue, or ctx ends.
func (at *Ticket[S]) Acquire(ctx context.Context) error {
	if at.Holds() {
		return nil
	}
	return tasks.Await(ctx, at.held)
}

// StepAside lets the requests of others overtake the ticket, which holds the queue. Until it is
// released, nothing that it waits for may take a ticket of the same sender.
func (at *Ticket[S]) StepAside() {
	q := at.Queue
	defer q.lock()()
	at.place = aside
	q.advanceLocked()
}

// Release gives up the ticket, whether it holds the queue or still waits. It may be called more
// than once.
func (at *Ticket[S]) Release() {
	defer at.Queue.lock()()
	at.Queue.removeLocked(at)
}

// AwaitTurn waits until the turn of a prompt may run. The ticket holds the queue, and is released
// if earlier turns go on for which the turn waits: requests behind it do not. An exclusive turn
// waits for all earlier ones, and so does one that follows an exclusive turn. limit is as for
// [Queues.PromptTicket]. overlaps reports whether there are turns for which it does not wait.
func (at PromptTicket[S]) AwaitTurn(exclusive bool, limit int) (overlaps bool, err error) {
	earlier, waitsForAll := at.follow(exclusive)
	goingOn := countGoingOn(earlier)
	// a lifecycle request between them and the turn may have failed before it ended them
	if limit > 0 && goingOn >= limit {
		return false, &TooManyError{at.Queue.ID}
	}
	if waitsForAll && goingOn > 0 {
		at.Release()
	}
	for _, t := range earlier {
		if !waitsForAll && t.goesOn() {
			overlaps = true
			continue
		}
		if err := t.Wait(at.turn.ctx); err != nil {
			return false, err
		}
	}
	return overlaps, nil
}

// follow returns the turns before that of the ticket, and whether it waits for all of them. It is
// exclusive then, so that those behind it do not overtake it.
func (at PromptTicket[S]) follow(exclusive bool) (earlier []*Turn, waitsForAll bool) {
	q := at.Queue
	defer q.lock()()
	for _, other := range q.prompts {
		if other == at.Ticket {
			break
		}
		earlier = append(earlier, other.turn)
		exclusive = exclusive || other.exclusive && other.turn.goesOn()
	}
	at.exclusive = exclusive
	return earlier, exclusive
}

// Answered notes, once, that the prompt was answered, and gives up the ticket.
func (at PromptTicket[S]) Answered() {
	q := at.Queue
	defer q.lock()()
	q.prompts = without(q.prompts, at.Ticket)
	at.turn.answered()
	q.removeLocked(at.Ticket)
}

// Package fair lets the owners of a store wait for each other in turn, so that one who calls often
// does not make the others wait for all of these calls.
package fair

import (
	"context"
	"slices"
	"sync"
)

// Queue has a number of places. Callers who wait for one get it owner by owner, and each owner's
// callers in the order in which they came. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	free    int
	owners  []string // those who wait, in the order of their turns
	waiting map[string][]chan struct{}
}

// NewQueue returns a queue with the given number of places, all of them free.
func NewQueue(places int) *Queue {
	return &Queue{free: places, waiting: make(map[string][]chan struct{})}
}

// Acquire waits for a place, which the caller gives back with Release. It fails with the cause of
// ctx if that ends first.
func (q *Queue) Acquire(ctx context.Context, owner string) error {
	got := q.enter(owner)
	select {
	case <-got:
		return nil
	case <-ctx.Done():
		q.leave(owner, got)
		return context.Cause(ctx)
	}
}

// enter returns a channel that is closed when the caller has a place.
func (q *Queue) enter(owner string) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	got := make(chan struct{})
	if q.free > 0 { // then nobody waits
		q.free--
		close(got)
		return got
	}
	if len(q.waiting[owner]) == 0 {
		q.owners = append(q.owners, owner)
	}
	q.waiting[owner] = append(q.waiting[owner], got)
	return got
}

// leave undoes enter, also if the caller has got a place in the meantime.
func (q *Queue) leave(owner string, got chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting[owner], got)
	if at < 0 {
		q.releaseLocked()
		return
	}
	q.waiting[owner] = slices.Delete(q.waiting[owner], at, at+1)
	if len(q.waiting[owner]) == 0 {
		delete(q.waiting, owner)
		q.owners = slices.DeleteFunc(q.owners, func(o string) bool { return o == owner })
	}
}

// Release gives a place back, to the next owner who waits.
func (q *Queue) Release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseLocked()
}

func (q *Queue) releaseLocked() {
	if len(q.owners) == 0 {
		q.free++
		return
	}
	owner := q.owners[0]
	q.owners = q.owners[1:]
	next, rest := q.waiting[owner][0], q.waiting[owner][1:]
	if len(rest) == 0 {
		delete(q.waiting, owner)
	} else {
		q.waiting[owner] = rest
		q.owners = append(q.owners, owner)
	}
	close(next)
}

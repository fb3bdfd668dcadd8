package core

import (
	"context"
	"slices"
	"sync"
)

// Queue has a number of places. Callers who wait for one get it owner by owner, and each owner's
// callers in the order in which they came, so that an owner who calls often does not make the
// others wait for all of these calls. It is safe for concurrent use.
type Queue struct {
	each int // the number of places that an owner may have at once

	mu      sync.Mutex
	free    int
	held    map[string]int
	owners  []string // those who wait, in the order of their turns
	waiting map[string][]chan struct{}
}

// NewQueue returns a queue with a number of free places, of which each owner may have some at once.
func NewQueue(places, each int) *Queue {
	return &Queue{each: each, free: places, held: make(map[string]int),
		waiting: make(map[string][]chan struct{})}
}

// Do calls do when it has a place.
func (q *Queue) Do(ctx context.Context, owner string, do func() error) error {
	if err := q.Acquire(ctx, owner); err != nil {
		return err
	}
	defer q.Release(owner)
	return do()
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
	if len(q.waiting[owner]) == 0 {
		q.owners = append(q.owners, owner)
	}
	q.waiting[owner] = append(q.waiting[owner], got)
	q.admitLocked()
	return got
}

// leave undoes enter, also if the caller has got a place in the meantime.
func (q *Queue) leave(owner string, got chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting[owner], got)
	if at < 0 {
		q.releaseLocked(owner)
		return
	}
	q.waiting[owner] = slices.Delete(q.waiting[owner], at, at+1)
	if len(q.waiting[owner]) == 0 {
		delete(q.waiting, owner)
		q.owners = slices.DeleteFunc(q.owners, func(o string) bool { return o == owner })
	}
}

// Release gives a place of an owner back.
func (q *Queue) Release(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseLocked(owner)
}

func (q *Queue) releaseLocked(owner string) {
	q.free++
	if q.held[owner]--; q.held[owner] == 0 {
		delete(q.held, owner)
	}
	q.admitLocked()
}

// admitLocked gives free places to those who wait and may have one more.
func (q *Queue) admitLocked() {
	for at := 0; q.free > 0 && at < len(q.owners); {
		owner := q.owners[at]
		if q.held[owner] == q.each {
			at++
			continue
		}
		q.owners = slices.Delete(q.owners, at, at+1)
		next, rest := q.waiting[owner][0], q.waiting[owner][1:]
		if len(rest) == 0 {
			delete(q.waiting, owner)
		} else {
			q.waiting[owner] = rest
			q.owners = append(q.owners, owner)
		}
		q.free--
		q.held[owner]++
		close(next)
	}
}

package core

import (
	"context"
	"slices"
	"sync"
)

// queue has a number of places. Callers who wait for one get it owner by owner, and each owner's
// callers in the order in which they came, so that an owner who calls often does not make the
// others wait for all of these calls. It is safe for concurrent use.
type queue struct {
	each int // the number of places that an owner may have at once

	mu      sync.Mutex
	free    int
	held    map[string]int
	owners  []string // those who wait, and some who have left, in the order of their turns
	waiting map[string][]chan struct{}
}

// newQueue returns a queue with a number of free places, of which each owner may have some at once.
func newQueue(places, each int) *queue {
	return &queue{each: each, free: places, held: make(map[string]int),
		waiting: make(map[string][]chan struct{})}
}

// acquire waits for a place, which the caller gives back with release. It fails with the cause of
// ctx if that ends first.
func (q *queue) acquire(ctx context.Context, owner string) error {
	got := make(chan struct{})
	q.mu.Lock()
	if _, waits := q.waiting[owner]; !waits {
		q.owners = append(q.owners, owner)
	}
	q.waiting[owner] = append(q.waiting[owner], got)
	q.admitLocked()
	q.mu.Unlock()
	select {
	case <-got:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.waiting[owner], got); at >= 0 {
		q.waiting[owner] = slices.Delete(q.waiting[owner], at, at+1)
	} else { // it has got a place in the meantime
		q.releaseLocked(owner)
	}
	return context.Cause(ctx)
}

// release gives a place of an owner back.
func (q *queue) release(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseLocked(owner)
}

func (q *queue) releaseLocked(owner string) {
	q.free++
	if q.held[owner]--; q.held[owner] == 0 {
		delete(q.held, owner)
	}
	q.admitLocked()
}

// admitLocked gives free places to those who wait and may have one more.
func (q *queue) admitLocked() {
	for at := 0; q.free > 0 && at < len(q.owners); {
		owner := q.owners[at]
		waiting := q.waiting[owner]
		if len(waiting) > 0 && q.held[owner] == q.each {
			at++
			continue
		}
		q.owners = slices.Delete(q.owners, at, at+1)
		delete(q.waiting, owner)
		if len(waiting) > 1 {
			q.owners, q.waiting[owner] = append(q.owners, owner), waiting[1:]
		}
		if len(waiting) > 0 { // otherwise all have left
			q.free--
			q.held[owner]++
			close(waiting[0])
		}
	}
}

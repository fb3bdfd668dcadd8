package server

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slots are places of running calls, which several clients share. A place that becomes free goes to
// the client that has the fewest, so that the many calls of one do not delay those of others; and
// one client leaves a place free for the others.
type slots struct {
	limit int
	slow  *transfers

	mu      sync.Mutex
	taken   int
	clients map[string]*share
	grants  int // so far
}

// share is what one client has of the slots.
type share struct {
	taken   int
	waiting []*waitingCall
	granted int // the number of the last grant
}

// waitingCall waits for n slots.
type waitingCall struct {
	n       int
	granted chan struct{}
}

func newSlots(limit int, slow *transfers) *slots {
	return &slots{limit: limit, slow: slow, clients: map[string]*share{}}
}

// acquire waits for n slots for a client. It reports false if ctx ends first. While there are none,
// it ends slow transfers.
func (s *slots) acquire(ctx context.Context, client string, n int) bool {
	if n == 0 {
		return true
	}
	call := &waitingCall{n, make(chan struct{})}
	s.mu.Lock()
	c := s.clients[client]
	if c == nil {
		c = &share{}
		s.clients[client] = c
	}
	c.waiting = append(c.waiting, call)
	s.grant()
	s.mu.Unlock()
	tick := time.NewTicker(slowAfter / 50)
	defer tick.Stop()
	for {
		select {
		case <-call.granted:
			return true
		case <-tick.C:
			s.slow.endSlowest()
		case <-ctx.Done():
			return !s.withdraw(client, call)
		}
	}
}

// withdraw ends the wait of a call. It reports false if the call already has its slots.
func (s *slots) withdraw(client string, call *waitingCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[client]
	i := -1
	if c != nil {
		i = slices.Index(c.waiting, call)
	}
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	s.forget(client)
	s.grant()
	return true
}

// release returns n slots of a client.
func (s *slots) release(client string, n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	s.clients[client].taken -= n
	s.forget(client)
	s.grant()
}

// forget removes a client without calls. The caller holds mu.
func (s *slots) forget(client string) {
	if c := s.clients[client]; c.taken == 0 && len(c.waiting) == 0 {
		delete(s.clients, client)
	}
}

// grant gives free slots to waiting calls. The caller holds mu.
func (s *slots) grant() {
	for {
		next := s.next()
		if next == nil || s.taken+next.waiting[0].n > s.limit {
			return
		}
		call := next.waiting[0]
		next.waiting = next.waiting[1:]
		next.taken += call.n
		s.taken += call.n
		s.grants++
		next.granted = s.grants
		close(call.granted)
	}
}

// next returns the client whose turn it is, or nil. The caller holds mu.
func (s *slots) next() (next *share) {
	for _, c := range s.clients {
		switch {
		case len(c.waiting) == 0, c.taken > 0 && c.taken+c.waiting[0].n >= s.limit:
		case next == nil, c.taken < next.taken,
			c.taken == next.taken && c.granted < next.granted:
			next = c
		}
	}
	return next
}

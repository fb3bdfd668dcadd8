package client

import (
	"context"
	"sync"
)

// turns knows which sessions have a turn, and which of these were cancelled, for the sake of their
// permission requests.
type turns struct {
	mu       sync.Mutex
	sessions map[string]*turn
}

type turn struct {
	prompts   int
	cancelled bool
	waiting   map[*context.CancelFunc]struct{}
}

func (t *turns) begin(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions == nil {
		t.sessions = make(map[string]*turn)
	}
	if t.sessions[id] == nil {
		t.sessions[id] = &turn{waiting: make(map[*context.CancelFunc]struct{})}
	}
	t.sessions[id].prompts++
}

// end forgets a cancel with the turn that it was for: a prompt may be waiting behind it.
func (t *turns) end(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	s.cancelled = false
	if s.prompts--; s.prompts == 0 {
		delete(t.sessions, id)
	}
}

func (t *turns) cancel(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return
	}
	s.cancelled = true
	for cancel := range s.waiting {
		(*cancel)()
	}
}

// ask returns a context that ends when the session's turn is cancelled, and has ended already if it
// was. done frees it.
func (t *turns) ask(ctx context.Context, id string) (asked context.Context, done func()) {
	asked, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return asked, cancel
	}
	if s.cancelled {
		cancel()
	}
	s.waiting[&cancel] = struct{}{}
	return asked, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(s.waiting, &cancel)
	}
}

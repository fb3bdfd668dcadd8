package proxy

import (
	"errors"
	"sync"
)

// routes finds the session that a child's message is for, by the child's id. While a session is being made
// the child may use an id that we do not know yet; what comes for it is held.
type routes struct {
	maxHeld, maxBytes int

	mu      sync.Mutex
	links   map[string]*link
	opening int                  // sessions being made
	held    map[string][]message // by the id that nobody knows yet
	count   int                  // of held messages
	bytes   int                  // of their params
}

func newRoutes(maxHeld, maxBytes int) *routes {
	return &routes{
		maxHeld:  maxHeld,
		maxBytes: maxBytes,
		links:    make(map[string]*link),
		held:     make(map[string][]message),
	}
}

var (
	errUnknownSession = errors.New("no session has this id")
	errTooManyHeld    = errors.New("too many messages for a session that the agent has not announced yet")
	errSameID         = errors.New("the agent gave a new session the id of another one")
)

// find returns the session of an id. If there is none, m is held if it can still become one, or the error
// says why not.
func (r *routes) find(id string, m message) (*link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.links[id]; l != nil {
		return l, nil
	}
	switch {
	case r.opening == 0:
		return nil, errUnknownSession
	case r.count == r.maxHeld || r.bytes+len(m.params) > r.maxBytes:
		return nil, errTooManyHeld
	}
	r.held[id] = append(r.held[id], m)
	r.count++
	r.bytes += len(m.params)
	return nil, nil
}

// begin says that a session is being made.
func (r *routes) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opening++
}

// end undoes begin. With the last one, what is still held has no session and is returned.
func (r *routes) end() (orphans []message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opening--; r.opening > 0 {
		return nil
	}
	for _, held := range r.held {
		orphans = append(orphans, held...)
	}
	clear(r.held)
	r.count, r.bytes = 0, 0
	return orphans
}

// attach gives an id its session, and returns what was held for it. The caller holds the session's order.
func (r *routes) attach(id string, l *link) (held []message, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links[id] != nil {
		return nil, errSameID
	}
	r.links[id] = l
	held = r.held[id]
	delete(r.held, id)
	r.count -= len(held)
	for _, m := range held {
		r.bytes -= len(m.params)
	}
	return held, nil
}

// detach takes the session's id from it.
func (r *routes) detach(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, id)
}

package acp

import (
	"sync"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// lanes are the lanes of a connection, one for each session id in use.
type lanes struct {
	mu     sync.Mutex
	by     map[sessionstore.ID]*lane
	closed bool // the sessions were taken to be closed: there are no more
}

// enter takes a place in id's lane, which it makes if need be.
func (ls *lanes) enter(id sessionstore.ID, e entry) *place {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.getLocked(id).enter(e)
}

// enterPrompt is lane.enterPrompt in id's lane.
func (ls *lanes) enterPrompt(id sessionstore.ID, t *turn) (*place, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.getLocked(id).enterPrompt(t)
}

func (ls *lanes) getLocked(id sessionstore.ID) *lane {
	l := ls.by[id]
	if l == nil {
		l = &lane{id: id, of: ls}
		if ls.by == nil {
			ls.by = make(map[sessionstore.ID]*lane)
		}
		ls.by[id] = l
	}
	return l
}

// find returns id's lane, nil if it has none.
func (ls *lanes) find(id sessionstore.ID) *lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.by[id]
}

// forget drops id's lane if nothing holds it.
func (ls *lanes) forget(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.by[l.id] == l && l.idle() {
		delete(ls.by, l.id)
	}
}

// activate makes s the active session of its lane. It reports whether it could: not after close.
func (ls *lanes) activate(s *session) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.closed {
		s.lane.activate(s)
	}
	return !ls.closed
}

// over reports whether no session can become active any more.
func (ls *lanes) over() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.closed
}

// close returns the active sessions, and lets no other become active.
func (ls *lanes) close() []*session {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	var active []*session
	for _, l := range ls.by {
		if s := l.active(); s != nil {
			active = append(active, s)
		}
	}
	return active
}

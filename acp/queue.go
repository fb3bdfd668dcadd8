package acp

import (
	"context"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// lane is one session id's order (clause A32). Requests enter it on the read loop and so
// in arrival order; one at a time is at its head. A prompt holds the head until its turn
// has begun, a call until it was handed to the runtime, a lifecycle request until its response was
// sent. The running turn is kept beside the line, because calls pass it and lifecycle requests end it.
type lane struct {
	id sessionstore.ID
	of *lanes

	mu      sync.Mutex
	line    []*place
	session *session // the active session, nil if there is none
	turn    *turn    // the turn that runs, nil if there is none
}

// entry says what stands in a lane's line.
type entry int

const (
	entryCall entry = iota
	entryPrompt
	entryLifecycle
)

// place is a place in a lane's line.
type place struct {
	lane  *lane
	entry entry
	turn  *turn         // of a prompt
	head  chan struct{} // closed when the place is at the head
	once  sync.Once
}

// enter takes the last place in the line. Called on the read loop.
func (l *lane) enter(e entry) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enterLocked(e, nil)
}

func (l *lane) enterLocked(e entry, t *turn) *place {
	p := &place{lane: l, entry: e, turn: t, head: make(chan struct{})}
	l.line = append(l.line, p)
	if len(l.line) == 1 {
		close(p.head)
	}
	return p
}

// enterPrompt is enter for a prompt. It fails at once if the prompt would meet a turn that nothing
// before it ends (W7).
func (l *lane) enterPrompt(t *turn) (*place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.turnBeforeLocked(); before != nil && before.inTheWay() {
		return nil, errTurnInProgress(l.id)
	}
	return l.enterLocked(entryPrompt, t), nil
}

// turnBeforeLocked is the turn that a new prompt would follow directly, nil if it follows a
// lifecycle request or nothing.
func (l *lane) turnBeforeLocked() *turn {
	for i := len(l.line) - 1; i >= 0; i-- {
		switch l.line[i].entry {
		case entryPrompt:
			return l.line[i].turn
		case entryLifecycle:
			return nil
		}
	}
	return l.turn
}

// cancel ends every turn that was asked for so far. It does not stand in line.
func (l *lane) cancel(params backend.Raw) {
	for _, t := range l.turns() {
		t.end(backend.ErrCancelled, params)
	}
}

// turns are the running turn and those that wait.
func (l *lane) turns() []*turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	var turns []*turn
	if l.turn != nil {
		turns = append(turns, l.turn)
	}
	for _, p := range l.line {
		if p.turn != nil && p.turn != l.turn {
			turns = append(turns, p.turn)
		}
	}
	return turns
}

// active returns the active session, nil if there is none.
func (l *lane) active() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// activate makes s the active session.
func (l *lane) activate(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
}

// deactivate takes s off the lane. It reports whether s was the active session.
func (l *lane) deactivate(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != s {
		return false
	}
	l.session = nil
	return true
}

// running returns the turn that runs, nil if none does.
func (l *lane) running() *turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turn
}

// setRunning makes t the turn that runs.
func (l *lane) setRunning(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn = t
}

// forgetTurn takes t, which was answered, off the lane.
func (l *lane) forgetTurn(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == t {
		l.turn = nil
	}
}

// endTurn ends the running turn, if there is one, and waits until its prompt was answered.
func (l *lane) endTurn(ctx context.Context, cause error) error {
	t := l.running()
	if t == nil {
		return nil
	}
	t.end(cause, nil)
	return t.wait(ctx)
}

// isHead reports whether the place is at the head of the line.
func (p *place) isHead() bool {
	select {
	case <-p.head:
		return true
	default:
		return false
	}
}

// wait waits until the place is at the head of the line, or ctx ends.
func (p *place) wait(ctx context.Context) error {
	select {
	case <-p.head:
		return nil
	default:
	}
	select {
	case <-p.head:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives up the place, wherever in the line it is, and the lane if nothing else holds it. It may be called again.
func (p *place) leave() {
	p.once.Do(func() { p.lane.drop(p) })
	p.lane.of.forget(p.lane)
}

// drop takes p out of the line.
func (l *lane) drop(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.line, p)
	l.line = slices.Delete(l.line, i, i+1)
	if i == 0 && len(l.line) > 0 {
		close(l.line[0].head)
	}
}

// idle reports whether the lane can be forgotten.
func (l *lane) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.line) == 0 && l.session == nil && l.turn == nil
}

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

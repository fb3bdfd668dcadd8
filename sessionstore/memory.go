package sessionstore

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
)

// Memory is a [Store] that lasts as long as its process: for tests, and for hosts that
// keep nothing. Lists are made by looking at every session.
type Memory struct {
	now func() time.Time

	mu          sync.Mutex
	closed      bool
	sessions    map[ID]*memorySession
	tombstones  map[runtimeKey]time.Time
	generations int64
}

// memorySession is a session's record and what hangs on it.
type memorySession struct {
	record Session
	// history only grows; a replaced one is another slice, told apart by its epoch.
	history []Update
	epoch   int64
	states  map[string]Update
	// imported tells that the session came from its runtime's own list.
	imported bool
	// turn is where the running turn's updates start in history, -1 between turns.
	turn int
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{now: time.Now, sessions: make(map[ID]*memorySession), tombstones: make(map[runtimeKey]time.Time)}
}

// Create implements [Store].
func (m *Memory) Create(ctx context.Context, s NewSession) (Lease, error) {
	if err := s.Keys.Validate(); err != nil {
		return Lease{}, err
	}
	return m.insert(ctx, s, func() (*memorySession, error) { return newMemorySession(), nil })
}

// Fork implements [Store].
func (m *Memory) Fork(ctx context.Context, source ID, s NewSession) (Lease, error) {
	if err := s.Keys.Validate(); err != nil {
		return Lease{}, err
	}
	return m.insert(ctx, s, func() (*memorySession, error) {
		from, err := m.find(source)
		if err != nil {
			return nil, err
		}
		return from.fork(), nil
	})
}

// insert stores what origin returns, which runs under the lock, as the session s.
func (m *Memory) insert(ctx context.Context, s NewSession, origin func() (*memorySession, error)) (Lease, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return Lease{}, err
	}
	defer unlock()
	session, err := origin()
	if err != nil {
		return Lease{}, err
	}
	if m.sessions[s.ID] != nil {
		return Lease{}, &ExistsError{ID: s.ID}
	}
	r := &session.record
	r.ID, r.Agent, r.Keys = s.ID, s.Agent, cloneKeys(s.Keys)
	if s.Title != "" {
		r.Title = s.Title
	}
	if s.State != nil {
		m.setState(session, s.State, s.StateKey)
	}
	r.Created = m.clock()
	r.Updated = r.Created
	m.sessions[s.ID] = session
	return m.hand(session), nil
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, id ID) (Session, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return Session{}, err
	}
	defer unlock()
	s, err := m.find(id)
	if err != nil {
		return Session{}, err
	}
	record := s.record
	record.Keys, record.State = cloneKeys(record.Keys), bytes.Clone(record.State)
	return record, nil
}

// Activate implements [Store].
func (m *Memory) Activate(ctx context.Context, id ID, a Activation) (Lease, error) {
	if err := a.Keys.Validate(); err != nil {
		return Lease{}, err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return Lease{}, err
	}
	defer unlock()
	s, err := m.find(id)
	if err != nil {
		return Lease{}, err
	}
	draft, err := m.drafted(id, a.History)
	if err != nil {
		return Lease{}, err
	}
	if a.Held != 0 && a.Held != s.record.Generation {
		return Lease{}, &FencedError{ID: id, Held: a.Held, Current: s.record.Generation}
	}
	s.record.Keys = a.Keys.WithCwd(s.record.Keys.Roots.Cwd())
	if a.State != nil {
		m.setState(s, a.State, a.StateKey)
	}
	if a.Held == 0 || draft != nil {
		m.endTurn(s)
	}
	if draft != nil {
		s.replace(draft)
	}
	return m.hand(s), nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, id ID) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if s := m.sessions[id]; s != nil {
		m.remove(s)
	}
	return nil
}

// Close implements [Store].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.sessions = true, nil
	return nil
}

// lock takes the lock, unless ctx ended or the store is closed.
func (m *Memory) lock(ctx context.Context) (unlock func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, ErrClosed
	}
	return m.mu.Unlock, nil
}

func (m *Memory) find(id ID) (*memorySession, error) {
	if s := m.sessions[id]; s != nil {
		return s, nil
	}
	return nil, &NotFoundError{ID: id}
}

// hand hands out a new lease of s.
func (m *Memory) hand(s *memorySession) Lease {
	m.generations++
	s.record.Generation = m.generations
	return Lease{ID: s.record.ID, Generation: m.generations}
}

// clock is the time as a store keeps it.
func (m *Memory) clock() time.Time { return m.now().UTC().Truncate(time.Millisecond) }

func newMemorySession() *memorySession {
	return &memorySession{states: make(map[string]Update), turn: -1}
}

// fork is a copy of s up to its last finished turn.
func (s *memorySession) fork() *memorySession {
	f := newMemorySession()
	f.record.Title, f.record.State = s.record.Title, bytes.Clone(s.record.State)
	f.history, f.record.Turns = slices.Clip(s.finished()), s.record.Turns
	if s.turn >= 0 {
		f.record.Turns--
	}
	for kind, u := range s.states {
		f.states[kind] = u
	}
	return f
}

// finished is the history up to the last finished turn.
func (s *memorySession) finished() []Update {
	if s.turn >= 0 {
		return s.history[:s.turn]
	}
	return s.history
}

func (s *memorySession) add(parts Parts) {
	for _, u := range parts.History {
		s.history = append(s.history, bytes.Clone(u))
	}
	for _, state := range parts.States {
		s.states[state.Kind] = bytes.Clone(state.Update)
	}
}

func cloneKeys(k Keys) Keys { return Keys{Roots: k.Roots, Real: slices.Clone(k.Real)} }

// cloneState copies a state; an empty one is none.
func cloneState(state []byte) []byte {
	if len(state) == 0 {
		return nil
	}
	return bytes.Clone(state)
}

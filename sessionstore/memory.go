package sessionstore

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
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
	states  map[Kind]Update
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
		return Lease{}, ErrExists
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
	return &memorySession{states: make(map[Kind]Update), turn: -1}
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

// add appends updates to the history, and stores the states among them.
func (s *memorySession) add(updates []Update) {
	history, states := Split(updates)
	for _, u := range history {
		s.history = append(s.history, u.clone())
	}
	for _, u := range states {
		s.states[u.Kind] = u.clone()
	}
}

func (u Update) clone() Update { return Update{Kind: u.Kind, Raw: bytes.Clone(u.Raw)} }

func cloneKeys(k Keys) Keys { return Keys{Roots: k.Roots, Real: slices.Clone(k.Real)} }

// cloneState copies a state; an empty one is none.
func cloneState(state []byte) []byte {
	if len(state) == 0 {
		return nil
	}
	return bytes.Clone(state)
}

// BeginTurn implements [Store].
func (m *Memory) BeginTurn(ctx context.Context, l Lease, t Turn) error {
	return m.leased(ctx, l, func(s *memorySession) {
		s.turn = len(s.history)
		s.record.Turns++
		if s.record.Title == "" {
			s.record.Title = t.Title
		}
		m.touch(s)
		s.add(t.Prompt)
	})
}

// Append implements [Store].
func (m *Memory) Append(ctx context.Context, l Lease, segment []Update) error {
	return m.leased(ctx, l, func(s *memorySession) { s.add(segment) })
}

// EndTurn implements [Store].
func (m *Memory) EndTurn(ctx context.Context, l Lease, _ StopReason) error {
	return m.leased(ctx, l, m.endTurn)
}

// endTurn ends the running turn, if there is one.
func (m *Memory) endTurn(s *memorySession) {
	if s.turn >= 0 {
		s.turn = -1
		m.touch(s)
	}
}

// SetTitle implements [Store].
func (m *Memory) SetTitle(ctx context.Context, l Lease, title string) error {
	return m.leased(ctx, l, func(s *memorySession) { s.record.Title = title })
}

// SaveState implements [Store].
func (m *Memory) SaveState(ctx context.Context, l Lease, state []byte, key string) error {
	return m.leased(ctx, l, func(s *memorySession) { m.setState(s, state, key) })
}

// Check implements [Store].
func (m *Memory) Check(ctx context.Context, l Lease) error {
	return m.leased(ctx, l, func(*memorySession) {})
}

// leased changes the session of l, if l is its newest lease.
func (m *Memory) leased(ctx context.Context, l Lease, change func(*memorySession)) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := m.find(l.ID)
	if err != nil {
		return err
	}
	if current := s.record.Generation; current != l.Generation {
		return &FencedError{ID: l.ID, Held: l.Generation, Current: current}
	}
	change(s)
	return nil
}

// touch notes activity. A clock that was set back does not make a session older.
func (m *Memory) touch(s *memorySession) {
	if now := m.clock(); now.After(s.record.Updated) {
		s.record.Updated = now
	}
}

// memoryDraft is a history without its session.
type memoryDraft struct {
	store *Memory
	of    *memorySession
	id    ID
	parts memorySession
	over  bool // used or discarded
}

// NewDraft implements [Store].
func (m *Memory) NewDraft(ctx context.Context, id ID) (Draft, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := m.find(id)
	if err != nil {
		return nil, err
	}
	return &memoryDraft{store: m, of: s, id: id, parts: *newMemorySession()}, nil
}

// Append implements [Draft].
func (d *memoryDraft) Append(ctx context.Context, segment []Update) error {
	unlock, err := d.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if d.over {
		return ErrDraft
	}
	d.parts.add(segment)
	return nil
}

// Discard implements [Draft].
func (d *memoryDraft) Discard(ctx context.Context) error {
	unlock, err := d.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	d.over, d.parts = true, memorySession{}
	return nil
}

// drafted is the memoryDraft that an activation was given, nil for none.
func (m *Memory) drafted(id ID, d Draft) (*memoryDraft, error) {
	if d == nil {
		return nil, nil
	}
	own, ok := d.(*memoryDraft)
	if !ok || own.store != m || own.of != m.sessions[id] || own.over {
		return nil, ErrDraft
	}
	return own, nil
}

// replace puts a draft in the place of the session's history.
func (s *memorySession) replace(d *memoryDraft) {
	s.history, s.epoch = d.parts.history, s.epoch+1
	for kind, u := range d.parts.states {
		s.states[kind] = u
	}
	d.over, d.parts = true, memorySession{}
}

var _ Store = (*Memory)(nil)

// memoryPage is how many updates of a history are read under one lock.
const memoryPage = 256

// History implements [Store].
func (m *Memory) History(ctx context.Context, id ID) iter.Seq2[Update, error] {
	return m.pages(ctx, id, func(s *memorySession) []Update { return s.history })
}

// Finished implements [Store].
func (m *Memory) Finished(ctx context.Context, id ID) iter.Seq2[Update, error] {
	return m.pages(ctx, id, (*memorySession).finished)
}

// pages yields a part of a history.
func (m *Memory) pages(ctx context.Context, id ID, part func(*memorySession) []Update) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		var history []Update
		origin, err := m.look(ctx, id, func(s *memorySession) { history = part(s) })
		for page := range slices.Chunk(history, memoryPage) {
			if err = m.unchanged(ctx, id, origin); err != nil {
				break
			}
			for _, u := range page {
				if !yield(u.clone(), nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Update{}, err)
		}
	}
}

// origin tells the history that a session had from a later one of the same id.
type origin struct {
	session *memorySession
	epoch   int64
}

// look shows a session under the lock, and returns the origin of its history.
func (m *Memory) look(ctx context.Context, id ID, see func(*memorySession)) (origin, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return origin{}, err
	}
	defer unlock()
	s, err := m.find(id)
	if err != nil {
		return origin{}, err
	}
	see(s)
	return origin{s, s.epoch}, nil
}

func (m *Memory) unchanged(ctx context.Context, id ID, o origin) error {
	now, err := m.look(ctx, id, func(*memorySession) {})
	switch {
	case err != nil:
		return err
	case now != o:
		return ErrReplaced
	}
	return nil
}

// States implements [Store].
func (m *Memory) States(ctx context.Context, id ID) ([]Update, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := m.find(id)
	if err != nil {
		return nil, err
	}
	var states []Update
	for _, kind := range StateKinds() {
		if u, ok := s.states[kind]; ok {
			states = append(states, u.clone())
		}
	}
	return states, nil
}

// List implements [Store].
func (m *Memory) List(ctx context.Context, q Query) (Page, error) {
	from, paging, err := q.From()
	if err != nil {
		return Page{}, err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return Page{}, err
	}
	defer unlock()
	found := []Session{}
	for _, s := range m.sessions {
		if matches(q, s.record) && (!paging || from.Before(position(s.record))) {
			found = append(found, s.record)
		}
	}
	slices.SortFunc(found, func(a, b Session) int {
		if c := b.Updated.Compare(a.Updated); c != 0 {
			return c
		}
		return strings.Compare(string(b.ID), string(a.ID))
	})
	return cut(q, found), nil
}

// cut makes a page of what was found.
func cut(q Query, found []Session) Page {
	page := Page{Sessions: found}
	if size := q.Size(); len(found) > size {
		page.Sessions = slices.Clone(found[:size])
		page.Next = q.After(position(found[size-1]))
	}
	for i := range page.Sessions {
		page.Sessions[i].Keys = cloneKeys(page.Sessions[i].Keys)
		page.Sessions[i].State, page.Sessions[i].StateKey = nil, ""
	}
	return page
}

func position(s Session) Position { return Position{Updated: s.Updated, ID: s.ID} }

func matches(q Query, s Session) bool {
	if q.Agent.Kind != "" && q.Agent != s.Agent {
		return false
	}
	if f := q.Cwd; f != nil && f.Spelling != s.Keys.Roots.Cwd() && f.Real != s.Keys.Real[0] {
		return false
	}
	f := q.Additional
	return f == nil ||
		f.Spelling.Equal(s.Keys.Roots.Additional()) ||
		slices.Equal(f.Real, s.Keys.Real[1:])
}

// runtimeKey is what a runtime calls a session, and whose runtime.
type runtimeKey struct {
	agent Agent
	name  string
}

// Import implements [Store].
func (m *Memory) Import(ctx context.Context, agent Agent, sessions []Imported) (added int, err error) {
	for _, s := range sessions {
		if err := s.Validate(); err != nil {
			return 0, err
		}
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	for _, s := range sessions {
		key := runtimeKey{agent, s.StateKey}
		if _, deleted := m.tombstones[key]; deleted {
			m.tombstones[key] = m.clock()
			continue
		}
		if known := m.holder(key); known != nil {
			known.refresh(s)
			continue
		}
		if m.sessions[s.ID] != nil {
			return added, ErrExists
		}
		m.sessions[s.ID] = m.imported(agent, s)
		added++
	}
	return added, nil
}

// refresh takes over what a runtime says of a session that is known.
func (s *memorySession) refresh(of Imported) {
	if of.Title != "" {
		s.record.Title = of.Title
	}
	if updated := of.Updated.UTC().Truncate(time.Millisecond); updated.After(s.record.Updated) {
		s.record.Updated = updated
	}
}

// imported is a session that is new here.
func (m *Memory) imported(agent Agent, of Imported) *memorySession {
	s := newMemorySession()
	s.imported = true
	s.record = Session{
		ID: of.ID, Agent: agent, Keys: cloneKeys(of.Keys), Title: of.Title,
		State: cloneState(of.State), StateKey: of.StateKey, Created: m.clock(), Updated: m.clock(),
	}
	if !of.Updated.IsZero() {
		s.record.Updated = of.Updated.UTC().Truncate(time.Millisecond)
		s.record.Created = s.record.Updated
	}
	m.hand(s)
	return s
}

// holder is the session that a runtime calls so, nil if there is none.
func (m *Memory) holder(key runtimeKey) *memorySession {
	for _, s := range m.sessions {
		if s.record.StateKey == key.name && s.record.Agent == key.agent {
			return s
		}
	}
	return nil
}

// setState stores a session's state with its key, which no other session has from then on. What it was called
// before was given up, unless it is called nothing now.
func (m *Memory) setState(s *memorySession, state []byte, key string) {
	s.record.State = cloneState(state)
	before := s.record.StateKey
	s.record.StateKey = ""
	if key == "" {
		return
	}
	if before != "" && before != key {
		m.bury(runtimeKey{s.record.Agent, before})
	}
	named := runtimeKey{s.record.Agent, key}
	if other := m.holder(named); other != nil {
		other.record.StateKey = ""
		if other.unused() {
			delete(m.sessions, other.record.ID)
		}
	}
	delete(m.tombstones, named)
	s.record.StateKey = key
}

// unused reports whether a session is only what a runtime said of it.
func (s *memorySession) unused() bool {
	return s.imported && s.record.Turns == 0 && len(s.history) == 0
}

// remove deletes a session, and remembers what its runtime calls it.
func (m *Memory) remove(s *memorySession) {
	delete(m.sessions, s.record.ID)
	if s.record.StateKey != "" {
		m.bury(runtimeKey{s.record.Agent, s.record.StateKey})
	}
}

// bury remembers a session of a runtime that is not to be imported, and forgets the oldest that were remembered so.
func (m *Memory) bury(key runtimeKey) {
	now := m.clock()
	m.tombstones[key] = now
	maps.DeleteFunc(m.tombstones, func(_ runtimeKey, at time.Time) bool { return now.Sub(at) > TombstoneAge })
	if len(m.tombstones) > MaxTombstones {
		oldest := slices.SortedFunc(maps.Keys(m.tombstones), func(a, b runtimeKey) int {
			return m.tombstones[a].Compare(m.tombstones[b])
		})
		delete(m.tombstones, oldest[0])
	}
}

// Prune implements [Store].
func (m *Memory) Prune(ctx context.Context, q PruneQuery) (n int, err error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	unused, all := q.Bounds()
	for _, s := range m.sessions {
		updated, empty := s.record.Updated.UnixMilli(), s.record.Turns == 0 && len(s.history) == 0 && !s.imported
		if updated >= all && (!empty || updated >= unused) {
			continue
		}
		n++
		if !q.DryRun {
			m.remove(s)
		}
	}
	return n, nil
}

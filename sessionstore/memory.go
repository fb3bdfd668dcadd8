package sessionstore

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"
)

var _ Store = (*Memory)(nil)

// memoryPageSize is the number of updates of a history that are read at once.
const memoryPageSize = 256

// Memory is a [Store] in memory, for tests and for hosts that keep nothing. A list takes time in
// proportion to the number of sessions.
type Memory struct {
	now func() time.Time

	// mu guards everything below, and the sessions and drafts. Unexported methods that take no
	// context are called with it held.
	mu          sync.Mutex
	closed      bool
	sessions    map[ID]*memorySession
	tombstones  map[stateKey]time.Time // when a session was deleted, or its agent listed it after that
	generations int64                  // the newest
}

// stateKey is a StateKey with its agent.
type stateKey struct {
	agent Agent
	name  string
}

// memorySession is a session with its history and states.
type memorySession struct {
	record Session
	// history only grows, so that a reader can keep a slice of it. When it is replaced, epoch is
	// incremented.
	history []Update
	epoch   int64
	states  map[Kind]Update // the latest of each kind
	// imported reports whether the session came from its agent's own list.
	imported bool
	// activated reports whether the session was ever activated.
	activated bool
	// running are the numbers of the running turns. The first of those that have overlapped without
	// a break up to now is firstTurn, and starts at the index open in history. Between turns
	// running is empty and open is -1.
	running   map[int64]bool
	firstTurn int64
	open      int
}

func newMemorySession() *memorySession {
	return &memorySession{states: make(map[Kind]Update), running: make(map[int64]bool), open: -1}
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{now: time.Now, sessions: make(map[ID]*memorySession), tombstones: make(map[stateKey]time.Time)}
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
		return from.fork(s.Agent), nil
	})
}

// insert stores a new session described by s. It begins with the content that create returns, which
// is called with the lock held.
func (m *Memory) insert(ctx context.Context, s NewSession, create func() (*memorySession, error)) (Lease, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return Lease{}, err
	}
	defer unlock()
	session, err := create()
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
	return m.issueLease(session), nil
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
	record.Keys, record.State, record.Meta = cloneKeys(record.Keys), bytes.Clone(record.State), bytes.Clone(record.Meta)
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
	draft, err := m.draftOf(id, a.History)
	if err != nil {
		return Lease{}, err
	}
	if a.Held != 0 && a.Held != s.record.Generation {
		return Lease{}, &FencedError{ID: id, Held: a.Held, Current: s.record.Generation}
	}
	s.activated = true
	s.record.Keys = a.Keys.WithCwd(s.record.Keys.Roots.Cwd())
	if a.State != nil {
		m.setState(s, a.State, a.StateKey)
	}
	if a.Held == 0 || draft != nil {
		m.interruptTurns(s)
	}
	if draft != nil {
		s.replaceHistory(draft)
	}
	return m.issueLease(s), nil
}

// Move implements [Store].
func (m *Memory) Move(ctx context.Context, l Lease, k Keys) (moved Lease, err error) {
	if err := k.Validate(); err != nil {
		return Lease{}, err
	}
	err = m.update(ctx, l, func(s *memorySession) {
		s.record.Keys = cloneKeys(k)
		moved = m.issueLease(s)
	})
	return moved, err
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

// BeginTurn implements [Store].
func (m *Memory) BeginTurn(ctx context.Context, l Lease, t Turn) (number int64, err error) {
	err = m.update(ctx, l, func(s *memorySession) {
		if !t.Overlaps {
			m.interruptTurns(s)
		}
		s.record.Turns++
		number = s.record.Turns
		if s.open < 0 {
			s.open, s.firstTurn = len(s.history), number
		}
		s.running[number] = true
		if s.record.Title == "" {
			s.record.Title = t.Title
		}
		m.touch(s)
		s.add(t.Prompt)
	})
	return number, err
}

// Append implements [Store].
func (m *Memory) Append(ctx context.Context, l Lease, segment []Update) error {
	return m.update(ctx, l, func(s *memorySession) { s.add(segment) })
}

// EndTurn implements [Store].
func (m *Memory) EndTurn(ctx context.Context, l Lease, number int64, _ StopReason) error {
	return m.update(ctx, l, func(s *memorySession) {
		if !s.running[number] {
			return
		}
		delete(s.running, number)
		if len(s.running) == 0 {
			s.open = -1
		}
		m.touch(s)
	})
}

// SetTitle implements [Store].
func (m *Memory) SetTitle(ctx context.Context, l Lease, title string) error {
	return m.update(ctx, l, func(s *memorySession) {
		if !s.record.Renamed {
			s.record.Title = title
		}
	})
}

// Rename implements [Store].
func (m *Memory) Rename(ctx context.Context, id ID, title string) error {
	return m.label(ctx, id, func(r *Session) { r.Title, r.Renamed = title, true })
}

// Archive implements [Store].
func (m *Memory) Archive(ctx context.Context, id ID) error {
	return m.label(ctx, id, func(r *Session) { r.Archived = true })
}

// Unarchive implements [Store].
func (m *Memory) Unarchive(ctx context.Context, id ID) error {
	return m.label(ctx, id, func(r *Session) { r.Archived = false })
}

// label calls change with the record of a session, while the lock is held.
func (m *Memory) label(ctx context.Context, id ID, change func(*Session)) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := m.find(id)
	if err == nil {
		change(&s.record)
	}
	return err
}

// SaveState implements [Store].
func (m *Memory) SaveState(ctx context.Context, l Lease, state []byte, key string) error {
	return m.update(ctx, l, func(s *memorySession) { m.setState(s, state, key) })
}

// Check implements [Store].
func (m *Memory) Check(ctx context.Context, l Lease) error {
	return m.update(ctx, l, func(*memorySession) {})
}

// memoryDraft is a [Draft] in memory.
type memoryDraft struct {
	store   *Memory
	session *memorySession
	content memorySession
	done    bool // used or discarded
}

// NewDraft implements [Store].
func (m *Memory) NewDraft(ctx context.Context, id ID) (Draft, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d := &memoryDraft{store: m, content: *newMemorySession()}
	if id == "" {
		return d, nil
	}
	d.session, err = m.find(id)
	return d, err
}

// Append implements [Draft].
func (d *memoryDraft) Append(ctx context.Context, segment []Update) error {
	unlock, err := d.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if d.done {
		return ErrDraft
	}
	d.content.add(segment)
	return nil
}

// Discard implements [Draft].
func (d *memoryDraft) Discard(ctx context.Context) error {
	unlock, err := d.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	d.done, d.content = true, memorySession{}
	return nil
}

// draftOf returns d, a draft of the session or for "", as this store's type, or nil if d is nil.
func (m *Memory) draftOf(id ID, d Draft) (*memoryDraft, error) {
	if d == nil {
		return nil, nil
	}
	own, ok := d.(*memoryDraft)
	if !ok || own.store != m || own.session != m.sessions[id] || own.done {
		return nil, ErrDraft
	}
	return own, nil
}

// History implements [Store].
func (m *Memory) History(ctx context.Context, id ID) iter.Seq2[Update, error] {
	return m.yieldHistory(ctx, id, func(s *memorySession) []Update { return s.history })
}

// Finished implements [Store].
func (m *Memory) Finished(ctx context.Context, id ID) iter.Seq2[Update, error] {
	return m.yieldHistory(ctx, id, (*memorySession).finished)
}

// yieldHistory yields the part of a history that part returns. It does not hold the lock while it
// yields.
func (m *Memory) yieldHistory(ctx context.Context, id ID, part func(*memorySession) []Update) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		history, version, err := m.view(ctx, id, part)
		for page := range slices.Chunk(history, memoryPageSize) {
			if err = m.checkVersion(ctx, id, version); err != nil {
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

// historyVersion identifies a history among those that a session, or several with the same id, had.
type historyVersion struct {
	session *memorySession
	epoch   int64
}

// view returns a part of a session's history, and its version.
func (m *Memory) view(ctx context.Context, id ID, part func(*memorySession) []Update) ([]Update, historyVersion, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, historyVersion{}, err
	}
	defer unlock()
	s, err := m.find(id)
	if err != nil {
		return nil, historyVersion{}, err
	}
	return part(s), historyVersion{s, s.epoch}, nil
}

// checkVersion returns an error if the session was deleted or has another history.
func (m *Memory) checkVersion(ctx context.Context, id ID, v historyVersion) error {
	_, current, err := m.view(ctx, id, (*memorySession).finished)
	if err == nil && current != v {
		err = ErrReplaced
	}
	return err
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
		if q.matches(s) && (!paging || from.Before(position(s.record))) {
			found = append(found, s.record)
		}
	}
	sort.Slice(found, func(i, j int) bool {
		a, b := &found[i], &found[j]
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID)) < 0
	})
	return pageOf(q, found), nil
}

// pageOf returns the first page of found.
func pageOf(q Query, found []Session) Page {
	page := Page{Sessions: found}
	if size := q.Size(); len(found) > size {
		page.Sessions = slices.Clone(found[:size])
		page.Next = q.After(position(found[size-1]))
	}
	for i := range page.Sessions {
		page.Sessions[i].Keys, page.Sessions[i].Meta = cloneKeys(page.Sessions[i].Keys), bytes.Clone(page.Sessions[i].Meta)
		page.Sessions[i].State, page.Sessions[i].StateKey = nil, ""
	}
	return page
}

// position returns the position of s in a list.
func position(s Session) Position { return Position{Updated: s.Updated, ID: s.ID} }

// matches reports whether the filters of q match s.
func (q Query) matches(s *memorySession) bool {
	switch {
	case q.Archive == WithoutArchived && s.record.Archived, q.Archive == OnlyArchived && !s.record.Archived:
		return false
	case s.unused() && !s.record.Archived && s.record.Updated.Before(q.Unused.Before) && !slices.Contains(q.Unused.Keep, s.record.ID):
		return false
	}
	return q.matchesKeys(s.record)
}

// matchesKeys reports whether the filters by agent and roots match s.
func (q Query) matchesKeys(s Session) bool {
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
		key := stateKey{agent, s.StateKey}
		if _, deleted := m.tombstones[key]; deleted {
			m.tombstones[key] = m.clock()
			continue
		}
		if known := m.findKey(key); known != nil {
			known.refresh(s)
			continue
		}
		if m.sessions[s.ID] != nil {
			return added, ErrExists
		}
		m.sessions[s.ID] = m.newImported(agent, s)
		added++
	}
	return added, nil
}

// Adopt implements [Store].
func (m *Memory) Adopt(ctx context.Context, agent Agent, s Imported, history Draft) (Lease, error) {
	if err := s.Validate(); err != nil {
		return Lease{}, err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return Lease{}, err
	}
	defer unlock()
	if m.sessions[s.ID] != nil {
		return Lease{}, ErrExists
	}
	if _, deleted := m.tombstones[stateKey{agent, s.StateKey}]; deleted {
		return Lease{}, &NotFoundError{ID: s.ID}
	}
	draft, err := m.draftOf("", history)
	if err != nil {
		return Lease{}, err
	}
	session := m.newImported(agent, s)
	session.record.StateKey, session.activated = "", true
	m.setState(session, s.State, s.StateKey)
	if draft != nil {
		session.replaceHistory(draft)
	}
	m.sessions[s.ID] = session
	return m.issueLease(session), nil
}

// newImported returns a new session for one that an agent lists. The caller stores it.
func (m *Memory) newImported(agent Agent, of Imported) *memorySession {
	s := newMemorySession()
	s.imported = true
	s.record = Session{
		ID: of.ID, Agent: agent, Keys: cloneKeys(of.Keys), Title: of.Title, Archived: of.Archived, Meta: bytes.Clone(of.Meta),
		State: cloneState(of.State), StateKey: of.StateKey, Created: m.clock(), Updated: m.clock(),
	}
	if !of.Updated.IsZero() {
		s.record.Updated = of.Updated.UTC().Truncate(time.Millisecond)
		s.record.Created = s.record.Updated
	}
	m.issueLease(s)
	return s
}

// findKey returns the session with a state key, or nil.
func (m *Memory) findKey(key stateKey) *memorySession {
	for _, s := range m.sessions {
		if s.record.StateKey == key.name && s.record.Agent == key.agent {
			return s
		}
	}
	return nil
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
		updated := s.record.Updated.UnixMilli()
		if updated >= all && (updated >= unused || !s.unused()) {
			continue
		}
		n++
		if !q.DryRun {
			m.remove(s)
		}
	}
	return n, nil
}

// Close implements [Store].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.sessions = true, nil
	return nil
}

// lock acquires the lock, unless ctx has ended or the store is closed.
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

// find returns a session, or a NotFoundError.
func (m *Memory) find(id ID) (*memorySession, error) {
	if s := m.sessions[id]; s != nil {
		return s, nil
	}
	return nil, &NotFoundError{ID: id}
}

// issueLease issues a new lease of s.
func (m *Memory) issueLease(s *memorySession) Lease {
	m.generations++
	s.record.Generation = m.generations
	return Lease{ID: s.record.ID, Generation: m.generations}
}

// clock returns the time as it is stored.
func (m *Memory) clock() time.Time { return m.now().UTC().Truncate(time.Millisecond) }

// update calls change with the session of l, which must be its newest lease, while the lock is
// held.
func (m *Memory) update(ctx context.Context, l Lease, change func(*memorySession)) error {
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

// touch records activity. If the clock was set back, Updated does not change.
func (m *Memory) touch(s *memorySession) {
	if now := m.clock(); now.After(s.record.Updated) {
		s.record.Updated = now
	}
}

// interruptTurns ends the running turns, if any.
func (m *Memory) interruptTurns(s *memorySession) {
	if s.open >= 0 {
		clear(s.running)
		s.open = -1
		m.touch(s)
	}
}

// setState stores the state and state key of a session. Another session with this key loses it, and
// is deleted if it was imported and never used. A tombstone is stored for the key that the session
// had before, unless key is "".
func (m *Memory) setState(s *memorySession, state []byte, key string) {
	s.record.State = cloneState(state)
	before := s.record.StateKey
	s.record.StateKey = ""
	if key == "" {
		return
	}
	if before != "" && before != key {
		m.addTombstone(stateKey{s.record.Agent, before})
		s.record.Meta = nil
	}
	named := stateKey{s.record.Agent, key}
	if other := m.findKey(named); other != nil {
		other.record.StateKey = ""
		if other.imported && !other.used() {
			delete(m.sessions, other.record.ID)
		}
	}
	delete(m.tombstones, named)
	s.record.StateKey = key
}

// remove deletes a session, and remembers its state key.
func (m *Memory) remove(s *memorySession) {
	delete(m.sessions, s.record.ID)
	if s.record.StateKey != "" {
		m.addTombstone(stateKey{s.record.Agent, s.record.StateKey})
	}
}

// addTombstone adds a tombstone, so that the session is not imported again, and deletes the oldest
// ones.
func (m *Memory) addTombstone(key stateKey) {
	now := m.clock()
	m.tombstones[key] = now
	maps.DeleteFunc(m.tombstones, func(_ stateKey, at time.Time) bool { return now.Sub(at) > TombstoneAge })
	if len(m.tombstones) > MaxTombstones {
		delete(m.tombstones, slices.MinFunc(slices.Collect(maps.Keys(m.tombstones)), func(a, b stateKey) int {
			return m.tombstones[a].Compare(m.tombstones[b])
		}))
	}
}

// fork returns a copy of s up to its last finished turn.
func (s *memorySession) fork(agent Agent) *memorySession {
	f := newMemorySession()
	f.record.Title = s.record.Title
	f.record.Turns = s.record.Turns
	if s.open >= 0 {
		f.record.Turns = s.firstTurn - 1
	}
	f.history = slices.Clip(s.finished()) // so that an append copies it
	if agent == s.record.Agent {
		f.record.State = bytes.Clone(s.record.State)
		maps.Copy(f.states, s.states)
	}
	return f
}

// finished returns the history up to the last finished turn.
func (s *memorySession) finished() []Update {
	if s.open >= 0 {
		return s.history[:s.open]
	}
	return s.history
}

// add appends copies of updates to the history, and stores the states among them.
func (s *memorySession) add(updates []Update) {
	history, states := Split(updates)
	for _, u := range history {
		s.history = append(s.history, u.clone())
	}
	for _, u := range states {
		s.states[u.Kind] = u.clone()
	}
}

// replaceHistory replaces the session's history by the draft d, which is used up.
func (s *memorySession) replaceHistory(d *memoryDraft) {
	s.history, s.epoch = d.content.history, s.epoch+1
	maps.Copy(s.states, d.content.states)
	d.done, d.content = true, memorySession{}
}

// refresh updates a known session from its agent's list.
func (s *memorySession) refresh(of Imported) {
	if s.imported && !s.activated && !s.record.Renamed && of.Title != "" {
		s.record.Title = of.Title
	}
	s.record.Meta = bytes.Clone(of.Meta)
	s.imported = s.imported || s.unused() && of.Updated.Sub(s.record.Created) > UnusedGrace
	if updated := of.Updated.UTC().Truncate(time.Millisecond); updated.After(s.record.Updated) {
		s.record.Updated = updated
	}
}

// used reports whether the session has ever had a turn or a history.
func (s *memorySession) used() bool { return s.record.Turns > 0 || len(s.history) > 0 }

// unused reports whether it is unused as in [UnusedFilter].
func (s *memorySession) unused() bool { return !s.used() && !s.imported }

func (u Update) clone() Update { return Update{Kind: u.Kind, Raw: bytes.Clone(u.Raw)} }

func cloneKeys(k Keys) Keys { return Keys{Roots: k.Roots, Real: slices.Clone(k.Real)} }

// cloneState returns a copy of a state, nil if it is empty.
func cloneState(state []byte) []byte {
	if len(state) == 0 {
		return nil
	}
	return bytes.Clone(state)
}

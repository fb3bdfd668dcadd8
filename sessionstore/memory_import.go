package sessionstore

import (
	"context"
	"maps"
	"slices"
	"time"
)

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
			return added, &ExistsError{ID: s.ID}
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

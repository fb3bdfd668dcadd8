package sessionstore

import (
	"context"
)

// BeginTurn implements [Store].
func (m *Memory) BeginTurn(ctx context.Context, l Lease, t Turn) error {
	prompt, err := Split(t.Prompt)
	if err != nil {
		return err
	}
	return m.leased(ctx, l, func(s *memorySession) {
		s.turn = len(s.history)
		s.record.Turns++
		if s.record.Title == "" {
			s.record.Title = t.Title
		}
		m.touch(s)
		s.add(prompt)
	})
}

// Append implements [Store].
func (m *Memory) Append(ctx context.Context, l Lease, segment []Update) error {
	parts, err := Split(segment)
	if err != nil {
		return err
	}
	return m.leased(ctx, l, func(s *memorySession) { s.add(parts) })
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

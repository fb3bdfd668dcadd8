package sessionstore

import "context"

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
	parts, err := Split(segment)
	if err != nil {
		return err
	}
	unlock, err := d.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if d.over {
		return &DraftError{ID: d.id}
	}
	d.parts.add(parts)
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
		return nil, &DraftError{ID: id}
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

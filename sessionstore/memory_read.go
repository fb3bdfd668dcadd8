package sessionstore

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
)

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
				if !yield(bytes.Clone(u), nil) {
					return
				}
			}
		}
		if err != nil {
			yield(nil, err)
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
		return &ReplacedError{ID: id}
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
			states = append(states, bytes.Clone(u))
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

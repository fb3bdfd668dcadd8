// Package mapstore is a session store that implements sessionstore.Store and none of the optional
// interfaces: what a program writes that keeps its sessions in a medium of its own.
//
// It must only be imported by tests.
package mapstore

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

var _ sessionstore.Store = (*Store)(nil)

// Store is a [sessionstore.Store] in memory. The zero value is empty.
type Store struct {
	mu         sync.Mutex
	sessions   map[sessionstore.ID]*session
	drafts     map[*draft]bool // that can be used
	generation int64           // the last one
	closed     bool
}

// session is a record with a history.
type session struct {
	sessionstore.Session
	history []sessionstore.Update
	states  map[sessionstore.Kind]sessionstore.Update
	running []int64 // the numbers of the running turns
	first   int64   // the number of the first turn that overlaps with these
	open    int     // where the history of the running turns begins
}

// do calls f, which may use the store, unless ctx has ended.
func (s *Store) do(ctx context.Context, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return sessionstore.ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.sessions == nil:
		s.sessions = make(map[sessionstore.ID]*session)
		s.drafts = make(map[*draft]bool)
	}
	return f()
}

func (s *Store) find(id sessionstore.ID) (*session, error) {
	if one := s.sessions[id]; one != nil {
		return one, nil
	}
	return nil, &sessionstore.NotFoundError{ID: id}
}

// update calls f with the session of l, which must be its newest lease.
func (s *Store) update(
	ctx context.Context, l sessionstore.Lease, f func(*session),
) error {
	return s.do(ctx, func() error {
		one, err := s.find(l.ID)
		if err != nil {
			return err
		}
		if err := one.check(l.Generation); err != nil {
			return err
		}
		f(one)
		return nil
	})
}

func (o *session) check(held int64) error {
	if held != o.Generation {
		return &sessionstore.FencedError{ID: o.ID, Held: held, Current: o.Generation}
	}
	return nil
}

// touch records activity. A clock that goes back does not change the order of lists.
func (o *session) touch() {
	if now := time.Now().UTC().Truncate(time.Millisecond); now.After(o.Updated) {
		o.Updated = now
	}
}

func (o *session) interrupt() {
	if len(o.running) > 0 {
		o.running = nil
		o.touch()
	}
}

// finished returns the number of updates and of turns up to the last finished turn.
func (o *session) finished() (updates int, turns int64) {
	if len(o.running) > 0 {
		return o.open, o.first - 1
	}
	return len(o.history), o.Turns
}

// add appends updates as they are stored.
func (o *session) add(updates []sessionstore.Update) {
	history, states := sessionstore.Split(updates)
	o.history = append(o.history, history...)
	for _, u := range states {
		o.states[u.Kind] = u
	}
}

// insert stores a session without a history.
func (s *Store) insert(n sessionstore.NewSession) (*session, error) {
	if s.sessions[n.ID] != nil {
		return nil, sessionstore.ErrExists
	}
	s.generation++
	one := &session{states: make(map[sessionstore.Kind]sessionstore.Update),
		Session: sessionstore.Session{ID: n.ID, Agent: n.Agent, Keys: n.Keys, Generation: s.generation,
			Title: sessionstore.CleanTitle(n.Title)}}
	one.touch()
	one.Created = one.Updated
	s.sessions[n.ID] = one
	s.saveState(one, n.State, n.StateKey)
	return one, nil
}

// saveState takes the state key from another session that has it.
func (s *Store) saveState(one *session, state []byte, key string) {
	for _, other := range s.sessions {
		if key != "" && other.Agent == one.Agent && other.StateKey == key {
			other.StateKey = ""
		}
	}
	one.State, one.StateKey = nil, key
	if len(state) > 0 {
		one.State = bytes.Clone(state)
	}
}

func (o *session) lease() sessionstore.Lease {
	return sessionstore.Lease{ID: o.ID, Generation: o.Generation}
}

// Create implements [sessionstore.Store].
func (s *Store) Create(
	ctx context.Context, n sessionstore.NewSession,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	err = s.do(ctx, func() error {
		one, err := s.insert(n)
		if err == nil {
			lease = one.lease()
		}
		return err
	})
	return lease, err
}

// Get implements [sessionstore.Store].
func (s *Store) Get(
	ctx context.Context, id sessionstore.ID,
) (got sessionstore.Session, err error) {
	err = s.do(ctx, func() error {
		one, err := s.find(id)
		if err == nil {
			got = one.Session
		}
		return err
	})
	return got, err
}

// List implements [sessionstore.Store].
func (s *Store) List(
	ctx context.Context, q sessionstore.Query,
) (page sessionstore.Page, err error) {
	after, paging, err := q.From()
	if err != nil {
		return page, err
	}
	err = s.do(ctx, func() error {
		page.Sessions = []sessionstore.Session{}
		for _, one := range s.sessions {
			if one.matches(q) && (!paging || after.Before(one.position())) {
				listed := one.Session
				listed.State, listed.StateKey = nil, ""
				page.Sessions = append(page.Sessions, listed)
			}
		}
		return nil
	})
	slices.SortFunc(page.Sessions, func(a, b sessionstore.Session) int {
		if (sessionstore.Position{Updated: a.Updated, ID: a.ID}).Before(
			sessionstore.Position{Updated: b.Updated, ID: b.ID}) {
			return -1
		}
		return 1
	})
	if size := q.Size(); len(page.Sessions) > size {
		page.Sessions = page.Sessions[:size]
		last := page.Sessions[size-1]
		page.Next = q.After(sessionstore.Position{Updated: last.Updated, ID: last.ID})
	}
	return page, err
}

func (o *session) position() sessionstore.Position {
	return sessionstore.Position{Updated: o.Updated, ID: o.ID}
}

func (o *session) matches(q sessionstore.Query) bool {
	unused := o.Turns == 0 && len(o.history) == 0
	texts := func(dirs []workspace.Dir) (all []string) {
		for _, d := range dirs {
			all = append(all, d.String())
		}
		return all
	}
	switch roots := o.Keys.Roots; {
	case q.Agent.Kind != "" && q.Agent != o.Agent,
		q.Archive == sessionstore.OnlyArchived,
		q.Cwd != nil && q.Cwd.Spelling != roots.Cwd() && q.Cwd.Real != o.Keys.Real[0],
		q.Additional != nil &&
			!slices.Equal(q.Additional.Spelling.Strings(), roots.Additional().Strings()) &&
			!slices.Equal(texts(q.Additional.Real), texts(o.Keys.Real[1:])):
		return false
	}
	return !unused || !o.Updated.Before(q.Unused.Before) || slices.Contains(q.Unused.Keep, o.ID)
}

// Activate implements [sessionstore.Store].
func (s *Store) Activate(
	ctx context.Context, id sessionstore.ID, a sessionstore.Activation,
) (lease sessionstore.Lease, err error) {
	if err := a.Keys.Validate(); err != nil {
		return lease, err
	}
	err = s.do(ctx, func() error {
		one, err := s.find(id)
		if err == nil && a.Held != 0 {
			err = one.check(a.Held)
		}
		if err != nil {
			return err
		}
		if a.History != nil {
			d, ok := a.History.(*draft)
			if !ok || d.store != s || d.id != id || !s.drafts[d] {
				return sessionstore.ErrDraft
			}
			delete(s.drafts, d)
			defer func() { one.add(d.updates) }()
		}
		if a.Held == 0 || a.History != nil {
			one.interrupt()
		}
		one.Keys = a.Keys.WithCwd(one.Keys.Roots.Cwd())
		if a.State != nil {
			s.saveState(one, a.State, a.StateKey)
		}
		s.generation++
		one.Generation = s.generation
		lease = one.lease()
		return nil
	})
	return lease, err
}

// Fork implements [sessionstore.Store].
func (s *Store) Fork(
	ctx context.Context, source sessionstore.ID, n sessionstore.NewSession,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	err = s.do(ctx, func() error {
		from, err := s.find(source)
		if err != nil {
			return err
		}
		if n.Title == "" {
			n.Title = from.Title
		}
		sameAgent := n.Agent == from.Agent
		if n.State == nil && sameAgent {
			n.State = from.State
		}
		one, err := s.insert(n)
		if err != nil {
			return err
		}
		updates, turns := from.finished()
		one.history, one.Turns = slices.Clone(from.history[:updates]), turns
		if sameAgent {
			one.states = maps.Clone(from.states)
		}
		lease = one.lease()
		return nil
	})
	return lease, err
}

// SaveState implements [sessionstore.Store].
func (s *Store) SaveState(
	ctx context.Context, l sessionstore.Lease, state []byte, key string,
) error {
	return s.update(ctx, l, func(one *session) { s.saveState(one, state, key) })
}

// Delete implements [sessionstore.Store].
func (s *Store) Delete(ctx context.Context, id sessionstore.ID) error {
	return s.do(ctx, func() error {
		delete(s.sessions, id)
		maps.DeleteFunc(s.drafts, func(d *draft, _ bool) bool { return d.id == id })
		return nil
	})
}

// SetTitle implements [sessionstore.Store].
func (s *Store) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	return s.update(ctx, l, func(one *session) {
		if !one.Renamed {
			one.Title = sessionstore.CleanTitle(title)
		}
	})
}

// Rename implements [sessionstore.Store].
func (s *Store) Rename(ctx context.Context, id sessionstore.ID, title string) error {
	return s.do(ctx, func() error {
		one, err := s.find(id)
		if err == nil {
			one.Title, one.Renamed = sessionstore.CleanTitle(title), title != ""
		}
		return err
	})
}

// BeginTurn implements [sessionstore.Store].
func (s *Store) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (number int64, err error) {
	err = s.update(ctx, l, func(one *session) {
		if !t.Overlaps {
			one.interrupt()
		}
		one.Turns++
		number = one.Turns
		if len(one.running) == 0 {
			one.first, one.open = number, len(one.history)
		}
		one.running = append(one.running, number)
		one.add(t.Prompt)
		if one.Title == "" {
			one.Title = sessionstore.CleanTitle(t.Title)
		}
		one.touch()
	})
	return number, err
}

// Append implements [sessionstore.Store].
func (s *Store) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	return s.update(ctx, l, func(one *session) { one.add(segment) })
}

// EndTurn implements [sessionstore.Store].
func (s *Store) EndTurn(ctx context.Context, l sessionstore.Lease, number int64) error {
	return s.update(ctx, l, func(one *session) {
		if i := slices.Index(one.running, number); i >= 0 {
			one.running = slices.Delete(one.running, i, i+1)
			one.touch()
		}
	})
}

// History implements [sessionstore.Store].
func (s *Store) History(
	ctx context.Context, id sessionstore.ID,
) iter.Seq2[sessionstore.Update, error] {
	return s.read(ctx, id, func(one *session) int { return len(one.history) })
}

// Finished implements [sessionstore.Store].
func (s *Store) Finished(
	ctx context.Context, id sessionstore.ID,
) iter.Seq2[sessionstore.Update, error] {
	return s.read(ctx, id, func(one *session) int { n, _ := one.finished(); return n })
}

// read yields the updates of a history up to the end that end returns at the beginning.
func (s *Store) read(
	ctx context.Context, id sessionstore.ID, end func(*session) int,
) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		var (
			read *session
			all  []sessionstore.Update
		)
		for i := 0; ; i++ {
			err := s.do(ctx, func() error {
				one, err := s.find(id)
				switch {
				case err != nil:
				case read == nil:
					read, all = one, one.history[:end(one)]
				case read != one:
					err = &sessionstore.NotFoundError{ID: id}
				}
				return err
			})
			if err != nil {
				yield(sessionstore.Update{}, err)
				return
			}
			if i == len(all) {
				return
			}
			u := all[i]
			u.Raw = bytes.Clone(u.Raw)
			if !yield(u, nil) {
				return
			}
		}
	}
}

// States implements [sessionstore.Store].
func (s *Store) States(
	ctx context.Context, id sessionstore.ID,
) (states []sessionstore.Update, err error) {
	err = s.do(ctx, func() error {
		one, err := s.find(id)
		for _, kind := range sessionstore.StateKinds() {
			if err != nil {
				break
			}
			if u, ok := one.states[kind]; ok {
				states = append(states, u)
			}
		}
		return err
	})
	return states, err
}

// Close implements [sessionstore.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// draft is a [sessionstore.Draft].
type draft struct {
	store   *Store
	id      sessionstore.ID
	updates []sessionstore.Update
}

// NewDraft implements [sessionstore.Store].
func (s *Store) NewDraft(ctx context.Context, id sessionstore.ID) (sessionstore.Draft, error) {
	d := &draft{store: s, id: id}
	err := s.do(ctx, func() error {
		if _, err := s.find(id); err != nil && id != "" {
			return err
		}
		s.drafts[d] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Append implements [sessionstore.Draft].
func (d *draft) Append(ctx context.Context, segment []sessionstore.Update) error {
	return d.store.do(ctx, func() error {
		if !d.store.drafts[d] {
			return sessionstore.ErrDraft
		}
		d.updates = append(d.updates, segment...)
		return nil
	})
}

// Discard implements [sessionstore.Draft].
func (d *draft) Discard(ctx context.Context) error {
	return d.store.do(ctx, func() error {
		delete(d.store.drafts, d)
		return nil
	})
}

package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// session is an active session: one activation, with its opened roots, its runtime and its
// right to write.
type session struct {
	id        sessionstore.ID
	member    string // the sessionMember of id
	agent     *agent
	lane      *lane
	workspace *workspace.Workspace
	runtime   runtime.Session
	servers   *serving
	host      *host
	recorder  *sessionstore.Recorder

	halves sync.Mutex    // first halves of calls to the runtime, one at a time
	order  chan struct{} // holds one value while an update is shown: the same order on the wire and in the record

	lease   sync.RWMutex // held for writing while the right to write changes hands
	current sessionstore.Lease

	title  string // guarded by the lane's head
	open   bool   // a turn is over whose end was not stored; guarded by the lane's head and its turn
	evict  sync.Once
	closed chan struct{}
	once   sync.Once // of close
}

// inOrder runs the first half of a call to the runtime.
func (s *session) inOrder(half func()) {
	s.halves.Lock()
	defer s.halves.Unlock()
	half()
}

// tellCancelled tells the runtime that its turn was cancelled. A panic in it changes nothing of that.
func (s *session) tellCancelled(params runtime.Raw) {
	_ = s.agent.guard("cancel", func() error {
		s.runtime.Cancel(params)
		return nil
	})
}

// write does a write with the session's current lease.
func (s *session) write(do func(sessionstore.Lease) error) error {
	s.lease.RLock()
	defer s.lease.RUnlock()
	return do(s.current)
}

// takeOver replaces the lease by that of an activation. Writes wait meanwhile, and go
// on with the new one: a turn that still runs is recorded to its end. A fenced session keeps its old lease,
// so that what it still says does not come after what another process wrote (S3). Which of the two
// it is, the store decides with the activation itself.
func (s *session) takeOver(ctx context.Context, change sessionstore.Activation) (sessionstore.Lease, error) {
	s.lease.Lock()
	defer s.lease.Unlock()
	change.Held = s.current.Generation
	l, err := s.agent.options.Store.Activate(ctx, s.id, change)
	if err == nil {
		s.current = l
		return l, nil
	}
	var fenced *sessionstore.FencedError
	if !errors.As(err, &fenced) {
		return l, err
	}
	change.Held = 0
	return s.agent.options.Store.Activate(ctx, s.id, change)
}

// leased is the store as the session's recorder sees it: it appends with the lease that is
// current when it does.
type leased struct {
	sessionstore.Store
	session *session
}

// Append implements [sessionstore.Store]. The latest title in the segment is stored too.
func (l leased) Append(ctx context.Context, _ sessionstore.Lease, segment []sessionstore.Update) error {
	var title *string
	for _, u := range segment {
		if t := titleIn(u); t != nil {
			title = t
		}
	}
	return l.session.write(func(current sessionstore.Lease) error {
		err := l.Store.Append(ctx, current, segment)
		if err == nil && title != nil {
			err = l.Store.SetTitle(ctx, current, *title)
		}
		return err
	})
}

// record starts the recorder, and watches it: when the store refuses a segment the session
// hears of it at once.
func (s *session) record(o sessionstore.RecorderOptions) {
	s.closed, s.order = make(chan struct{}), make(chan struct{}, 1)
	s.recorder = sessionstore.NewRecorder(leased{Store: s.agent.options.Store, session: s}, s.current, o)
	s.agent.running.Go(func() {
		select {
		case <-s.recorder.Failed():
			s.failed(s.recorder.Err())
		case <-s.closed:
		}
	})
}

// update shows the client an update and records it: first the wire, then the record, whose commits
// nobody waits for here (W11).
func (s *session) update(ctx context.Context, u runtime.Update) error {
	u, err := readUpdate(u)
	if err != nil {
		return err
	}
	select {
	case s.order <- struct{}{}:
		defer func() { <-s.order }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // also while there is room
	}
	if err := s.show(ctx, u); err != nil {
		return err
	}
	return s.recorder.Record(ctx, u)
}

// saveState stores the runtime's own value. A refusal ends the session, but not here: this may be called by what the
// session's end waits for.
func (s *session) saveState(ctx context.Context, state []byte) error {
	err := s.write(func(l sessionstore.Lease) error {
		return s.agent.options.Store.SaveState(ctx, l, state, s.agent.keyOf(state))
	})
	if err != nil {
		s.agent.running.Go(func() { s.failed(err) })
	}
	return err
}

// show sends the client an update without recording it.
func (s *session) show(ctx context.Context, u runtime.Update) error {
	return s.agent.conn.Notify(ctx, methodUpdate, putMember(u, s.member))
}

// failed takes note that the store refused a write. A session that another process took, or
// that was deleted, ends here: its turn is cancelled, its roots are freed.
func (s *session) failed(err error) {
	var (
		fenced  *sessionstore.FencedError
		deleted *sessionstore.NotFoundError
	)
	cause := err
	gone := errors.As(err, &fenced) || errors.As(err, &deleted)
	if gone {
		cause = errors.Join(runtime.ErrFenced, err)
	}
	if t := s.lane.running(); t != nil && t.runsIn(s) && !errors.Is(err, context.Canceled) {
		s.agent.running.Go(func() { t.end(cause, nil) })
	}
	if gone {
		s.evict.Do(func() { s.agent.evict(s, cause) })
	}
}

// close frees what the session holds, once. Its turn was answered.
func (s *session) close(ctx context.Context) error {
	var err error
	s.once.Do(func() {
		s.host.close()
		defer close(s.closed)
		err = s.recorder.Close(ctx)
		err = errors.Join(err, s.agent.guard("close", func() error { return s.runtime.Close(ctx) }), s.servers.close(ctx), s.workspace.Close())
	})
	return err
}

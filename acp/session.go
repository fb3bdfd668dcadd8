package acp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// record is what stores a session's updates: a recorder, and another one when the store can be used again after it
// could not.
type record struct {
	session *session
	options sessionstore.RecorderOptions
	closed  chan struct{}

	mu  sync.Mutex
	now *sessionstore.Recorder
}

// newRecord starts the record of a session, which closes it.
func newRecord(s *session, o sessionstore.RecorderOptions) *record {
	r := &record{session: s, options: o, closed: make(chan struct{})}
	r.begin()
	return r
}

// begin starts a recorder, and watches it: when the store refuses a segment the session hears of it at once.
func (r *record) begin() {
	recorder := sessionstore.NewRecorder(leased{Store: r.session.agent.options.Store, session: r.session}, sessionstore.Lease{}, r.options)
	r.now = recorder
	r.session.agent.running.Go(func() {
		select {
		case <-recorder.Failed():
			r.session.failed(recorder.Err())
		case <-r.closed:
		}
	})
}

// recorder is the one that records now.
func (r *record) recorder() *sessionstore.Recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// renew begins anew if the store refused something, for any other reason than that the session is gone. What was lost is
// lost: the turn in which it was said has failed.
func (r *record) renew(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.now.Err()
	if err == nil || gone(err) {
		return
	}
	select {
	case <-r.closed:
		return
	default:
	}
	_ = r.now.Close(ctx) // which says the same
	r.begin()
}

// close stores what is left.
func (r *record) close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.closed)
	return r.now.Close(ctx)
}

// leased is the store as a session's recorder sees it: it appends with the lease that is current when it does.
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
		if err != nil || title == nil {
			return err
		}
		l.session.titled.Store(*title != "")
		return l.Store.SetTitle(ctx, current, *title)
	})
}

// session is an active session: one activation, with its opened roots, its runtime and its
// right to write.
type session struct {
	id        sessionstore.ID
	member    string // the sessionMember of id
	agent     *agent
	lane      *lane
	workspace *workspace.Workspace
	runtime   backend.Session
	servers   *serving
	host      *host
	record    *record

	halves sync.Mutex    // first halves of calls to the runtime, one at a time
	order  chan struct{} // holds one value while an update is shown: the same order on the wire and in the record

	lease   sync.RWMutex // held for writing while the right to write changes hands
	current sessionstore.Lease

	titled atomic.Bool // it has a title
	open   bool        // a turn is over whose end was not stored; guarded by the lane's head and its turn
	evict  sync.Once
	once   sync.Once // of close
}

// newSession is the session that an activation becomes. It was stored under l.
func newSession(act *activation, in *lane, l sessionstore.Lease) *session {
	s := &session{
		id: act.id, member: sessionMember(act.id), agent: act.agent, lane: in, workspace: act.workspace,
		runtime: act.runtime, servers: act.host.servers, host: act.host, current: l, order: make(chan struct{}, 1),
	}
	s.titled.Store(act.title != "")
	s.record = newRecord(s, act.agent.options.tuning.Recorder)
	return s
}

// inOrder runs the first half of a call to the runtime.
func (s *session) inOrder(half func()) {
	s.halves.Lock()
	defer s.halves.Unlock()
	half()
}

// tellCancelled tells the runtime that its turn was cancelled. A panic in it changes nothing of that.
func (s *session) tellCancelled(params backend.Raw) {
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

// update shows the client an update and records it: first the wire, then the record, whose commits
// nobody waits for here (W11).
func (s *session) update(ctx context.Context, u backend.Update) error {
	parsed, err := parseUpdate(u)
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
	return s.record.recorder().Record(ctx, parsed)
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
func (s *session) show(ctx context.Context, u backend.Update) error {
	return s.agent.conn.Notify(ctx, methodUpdate, putMember(u, s.member))
}

// failed takes note that the store refused a write. A session that another process took, or
// that was deleted, ends here: its turn is cancelled, its roots are freed.
func (s *session) failed(err error) {
	cause := err
	if gone(err) {
		cause = errors.Join(backend.ErrFenced, err)
	}
	if t := s.lane.running(); t != nil && t.runsIn(s) && !errors.Is(err, context.Canceled) {
		s.agent.running.Go(func() { t.end(cause, nil) })
	}
	if gone(err) {
		s.evict.Do(func() { s.agent.evict(s, cause) })
	}
}

// gone reports whether err says that another process took the session, or that it was deleted.
func gone(err error) bool {
	return errors.As(err, new(*sessionstore.FencedError)) || errors.As(err, new(*sessionstore.NotFoundError))
}

// close frees what the session holds, once. Its turn was answered.
func (s *session) close(ctx context.Context) error {
	var err error
	s.once.Do(func() {
		s.host.close()
		err = s.record.close(ctx)
		err = errors.Join(err, s.agent.guard("close", func() error { return s.runtime.Close(ctx) }), s.servers.close(ctx), s.workspace.Close())
	})
	return err
}

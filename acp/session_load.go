package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// acceptLoad serves session/load and session/resume.
func (c *connection) acceptLoad(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	cause := backend.Cause(r.Method)
	params := parseParams(r.Params, loadShape)
	id, _ := params.Field(protocol.SessionID).Text() // checked by decodeSession
	at := c.home.queues.Ticket(sessionstore.ID(id), turns.Lifecycle, c)
	servers := required
	if cause == backend.Resume {
		servers = optional
	}
	l := &load{from: c, hurried: func() {}, replacement: replacement{
		agent: c.agent, at: at, cause: cause, endTurns: func(ctx context.Context) error {
			return at.Queue.EndTurns(ctx, backend.ErrCancelled)
		}}}
	if s := at.Queue.Active(); s != nil { // its messages must not wait for viewers that do not read
		l.hurried = s.viewers.Hurry()
	}
	request := ctx
	return func() (json.RawMessage, error) {
		ctx, cancel := c.agent.requestContext(request)
		defer cancel(nil)
		ok := false
		defer func() {
			l.hurried()
			if !ok { // also after a panic
				at.Release()
			}
		}()
		var err error
		if l.params, err = c.decodeSession(ctx, params, required, servers); err != nil {
			return nil, err
		}
		if cause == backend.Load {
			l.pace = c.pace(request)
		}
		s, result, err := l.run(ctx)
		if err != nil {
			return nil, protocolError(err)
		}
		if l.joined != nil {
			r.AfterResponse(l.joined)
		}
		if ok = s != nil; ok {
			c.releaseAfterResponse(r, at, s, l.notice)
		}
		return result, nil
	}
}

// load is a session/load or session/resume.
type load struct {
	replacement
	from    *connection // of the client that has sent the request
	pace    pace
	hurried func() // to be called once at holds the queue
	joined  func() // to be called after the response, if the load has joined previous
}

// run activates a stored session, or lets the client see one that it may not open. What can fail in
// the roots, in the backend or in the store comes first; then the running turn of the active
// session ends, the new activation replaces it, and a load replays the history. If that cannot be
// read or sent, the session is closed, and remains stored with its new roots.
func (l *load) run(ctx context.Context) (*session, json.RawMessage, error) {
	if err := l.at.Acquire(ctx); err != nil {
		return nil, nil, err
	}
	l.hurried()
	if l.previous = l.at.Queue.Active(); l.previous != nil {
		if l.previous.agent.identity() != l.agent.identity() {
			return nil, nil, errOpenElsewhere(l.params.id, nil)
		}
		l.agent = l.previous.agent
	}
	a := l.agent
	var err error
	if l.stored, err = a.sessions.Find(ctx, l.params.id, l.params.roots.Cwd()); err != nil {
		return nil, nil, err
	}
	if err := a.sessions.MatchCwd(ctx, l.params.roots.Cwd(), l.stored.Keys); err != nil {
		return nil, nil, err
	}
	switch joins, err := l.joins(ctx); {
	case err != nil:
		return nil, nil, err
	case joins:
		return l.join(ctx)
	case !l.from.peer.Role.may(acts):
		return nil, json.RawMessage(`{}`), l.view(ctx)
	}
	if err := a.chooseFolders(ctx, &l.params, l.cause, &l.stored.Session); err != nil {
		return nil, nil, err
	}
	s, err := l.replace(ctx, openOptions{
		viewers: newViewers(a, l.from, l.params.id), loading: l.from, pace: l.pace})
	if err != nil {
		return nil, nil, err
	}
	s.notice += s.droppedFolders(l.cause, l.stored.Keys) + l.broad
	if l.cause == backend.Load {
		// A session whose history cannot be shown does not stay open.
		if err := a.replay(context.WithoutCancel(ctx), s, l.from, l.pace); err != nil {
			s.end(a.base, nil)
			return nil, nil, err
		}
	}
	return s, s.opened.Result, nil
}

// replacement opens a stored session in place of the active one, if there is one.
type replacement struct {
	agent    *agent // runs the session
	at       *ticket
	cause    backend.Cause
	params   sessionParams
	stored   listing.Openable
	previous *session // the active session, or nil
	// endTurns ends the turns of previous, or does nothing if the current one goes on. The new
	// session keeps it, so it must not refer to previous.
	endTurns func(context.Context) error

	notice string // for the user, from MovedRoots
	broad  string // for a user who was not asked about the roots; see session.broadRoots
}

// replace opens the session and makes it active in place of the previous one. o has its viewers,
// and what a load needs besides.
func (r *replacement) replace(ctx context.Context, o openOptions) (*session, error) {
	s, err := r.open(ctx, o)
	if err != nil {
		return nil, r.hintMoves(ctx, err)
	}
	lease, err := s.store(func() (sessionstore.Lease, error) { return r.takeOver(ctx, s) })
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // it is too late to give up
	err = r.activate(ctx, s, lease)
	r.discard(ctx, s)
	return s, err
}

// open opens the session beside the previous one, whose turn goes on unless the backend needs it to
// end.
func (r *replacement) open(ctx context.Context, o openOptions) (*session, error) {
	endTurns := r.endTurns
	stop := sync.OnceValue(func() error { return endTurns(ctx) })
	o.id, o.stored, o.foreign = r.params.id, r.stored.ID, r.stored.Unstored
	o.params, o.previous = r.params, r.previous
	o.activation = backend.Activation{
		Cause: r.cause, State: r.stored.State,
		MustExist: r.agent.sessions.OnlyBackendKnows(ctx, r.stored),
		Unlisted:  r.stored.Unlisted,
		Stop:      func(context.Context) error { return stop() },
	}
	if !o.foreign {
		o.activation.History = sessionstore.WithoutEnds(
			r.agent.options.Store.History(ctx, o.stored))
	}
	if r.previous != nil {
		o.activation.Previous = r.previous.backend
	}
	s, err := r.agent.open(ctx, o)
	if err == nil {
		r.notice = r.agent.sessions.MovedRoots(s.id, r.stored.Keys, s.workspace.Opened()) +
			s.opened.Notice
	}
	return s, err
}

// activate ends the turns of the previous session, and replaces it by s, which is stored under
// lease. The previous session ends even if that fails.
func (r *replacement) activate(ctx context.Context, s *session, lease sessionstore.Lease) error {
	a := r.agent
	if err := r.endTurns(ctx); err != nil {
		a.log.Warn("cannot end the turn", "session", r.stored.ID, "error", err)
	}
	if r.previous != nil {
		r.previous.ownServers(false) // s has the set from now on
	}
	err := s.activate(r.at.Queue, lease, r.stored.Title)
	if err == nil {
		s.renamed.Store(r.stored.Renamed)
		r.setNotice(s)
	}
	if r.previous != nil {
		if r.previous.viewers != s.viewers {
			r.previous.viewers.Close()
		}
		r.previous.endOpenTurns(a.base, lease)
		r.previous.retire(a.base)
	}
	return err
}

// discard removes what the new session made superfluous: the backend's session that it replaces,
// and the draft of a history that was replayed.
func (r *replacement) discard(ctx context.Context, s *session) {
	a := r.agent
	a.sessions.Discard(ctx, r.stored.ID, s.opened.Superseded)
	if err := s.dropReplayed(ctx); err != nil {
		a.log.Warn("cannot discard the replayed history", "session", r.stored.ID, "error", err)
	}
}

// hintMoves adds to an error about missing folders of the stored session how to move it. Folders
// that only the client named get no hint: they may not be the session's.
func (r *replacement) hintMoves(ctx context.Context, err error) error {
	movable := []string{"cwd", keptSetting}
	for _, f := range r.params.folders {
		if f.confirmed {
			movable = append(movable, f.Setting)
		}
	}
	diskErr := r.agent.tasks.OnDisk(ctx, func() error {
		listing.HintMoves(strictjson.ViolationsOf(err), func(v strictjson.Violation, _ string) bool {
			return slices.Contains(movable, v.Field)
		}, r.agent.removedWorktree)
		return nil
	})
	return cmp.Or(diskErr, err)
}

// setNotice gives s the notice that the previous session has not shown, and notes what is new about
// the roots.
func (r *replacement) setNotice(s *session) {
	known := r.stored.Keys.Roots
	switch {
	case r.previous != nil:
		s.notice, s.prompted = r.previous.notice, r.previous.prompted
	case r.stored.Turns == 0:
		known, s.prompted = workspace.Roots{}, r.stored.Title != ""
	default:
		s.prompted = true
	}
	r.broad = s.broadRoots(known)
}

// takeOver stores the session's new roots and returns a new lease, which the previous session uses
// from now on, unless another process had taken it over.
func (r *replacement) takeOver(ctx context.Context, s *session) (sessionstore.Lease, error) {
	a := r.agent
	state := s.gate.TakeState()
	change := sessionstore.Activation{Keys: s.keys(r.stored.Keys.Roots.Cwd()), State: state,
		StateKey: a.sessions.StateKey(state)}
	ctx = context.WithoutCancel(ctx)
	replayed, err := s.takeReplayed(ctx)
	if err != nil {
		return sessionstore.Lease{}, err
	}
	if r.stored.Unstored {
		change.History = replayed
		return r.adopt(ctx, change)
	}
	lease, err := r.change(ctx, change)
	if err != nil || replayed == nil {
		return lease, err
	}
	// Another process may have added the same meanwhile. Under the lease it cannot.
	current, err := s.isReplayCurrent(ctx)
	if err != nil || !current {
		return lease, err
	}
	return r.change(ctx, sessionstore.Activation{Keys: change.Keys, Held: lease.Generation,
		History: replayed})
}

// adopt stores a session that only the backend knew, unless another process has just done so.
func (r *replacement) adopt(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	lease, err := r.agent.sessions.Adopt(ctx, r.stored.Session, change)
	if !errors.Is(err, sessionstore.ErrExists) {
		return lease, err
	}
	found, err := r.agent.sessions.Stored(ctx, r.params.id)
	if err == nil {
		err = r.agent.sessions.MatchCwd(ctx, r.params.roots.Cwd(), found.Keys)
	}
	if err != nil {
		return lease, err
	}
	change.History = nil
	return r.change(ctx, change)
}

// change stores a change of the session.
func (r *replacement) change(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	if r.previous == nil {
		return r.agent.options.Store.Activate(ctx, r.stored.ID, change)
	}
	return r.previous.takeOver(ctx, change)
}

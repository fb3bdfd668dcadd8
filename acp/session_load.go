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
	l := &load{agent: c.agent, from: c, at: at, cause: cause, hurried: func() {}}
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
	agent  *agent      // runs the session
	from   *connection // of the client that has sent the request; nil if inTurn
	at     *ticket
	cause  backend.Cause
	pace   pace
	params sessionParams
	// set for /roots and /mcp: the current turn continues and the backend is not told
	inTurn bool

	stored   listing.Openable
	previous *session // the active session, or nil
	notice   string   // for the user, from MovedRoots
	hurried  func()   // to be called once at holds the queue
	joined   func()   // to be called after the response, if the load has joined previous
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
	s, err := l.replace(ctx)
	if err != nil {
		return nil, nil, err
	}
	if l.cause == backend.Load {
		// A session whose history cannot be shown does not stay open.
		if err := a.replay(context.WithoutCancel(ctx), s, l.from, l.pace); err != nil {
			s.end(a.base, nil)
			return nil, nil, err
		}
	}
	return s, s.opened.Result, nil
}

// replace opens the session and makes it active in place of the previous one.
func (l *load) replace(ctx context.Context) (*session, error) {
	s, err := l.open(ctx)
	if err != nil {
		return nil, l.hintMoves(ctx, err)
	}
	lease, err := s.store(func() (sessionstore.Lease, error) { return l.takeOver(ctx, s) })
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // it is too late to give up
	err = l.activate(ctx, s, lease)
	l.discard(ctx, s)
	return s, err
}

// open opens the session beside the previous one, whose turn goes on unless the backend needs it to
// end.
func (l *load) open(ctx context.Context) (*session, error) {
	endTurns := l.turnEnder()
	stop := sync.OnceValue(func() error { return endTurns(ctx) })
	o := openOptions{id: l.params.id, stored: l.stored.ID, params: l.params, previous: l.previous,
		pace: l.pace, foreign: l.stored.Unstored,
		activation: backend.Activation{
			Cause: l.cause, State: l.stored.State,
			MustExist: l.agent.sessions.OnlyBackendKnows(ctx, l.stored),
			Unlisted:  l.stored.Unlisted,
			Stop:      func(context.Context) error { return stop() },
		}}
	if !l.stored.Unstored {
		o.activation.History = sessionstore.WithoutEnds(
			l.agent.options.Store.History(ctx, l.stored.ID))
	}
	if l.previous != nil {
		o.activation.Previous = l.previous.backend
	}
	if l.inTurn {
		o.viewers = l.previous.viewers
	} else {
		o.viewers, o.loading = newViewers(l.agent, l.from, l.params.id), l.from
	}
	s, err := l.agent.open(ctx, o)
	if err == nil {
		l.notice = l.agent.sessions.MovedRoots(s.id, l.stored.Keys, s.workspace.Opened()) +
			s.opened.Notice
	}
	return s, err
}

// turnEnder returns a function that ends the turns of the previous session, unless it is in one
// that goes on. The function does not hold a reference to the previous session.
func (l *load) turnEnder() func(context.Context) error {
	if l.inTurn {
		return func(context.Context) error { return nil }
	}
	q := l.at.Queue
	return func(ctx context.Context) error { return q.EndTurns(ctx, backend.ErrCancelled) }
}

// activate ends the turns of the previous session, and replaces it by s, which is stored under
// lease. The previous session ends even if that fails.
func (l *load) activate(ctx context.Context, s *session, lease sessionstore.Lease) error {
	a := l.agent
	if err := l.turnEnder()(ctx); err != nil {
		a.log.Warn("cannot end the turn", "session", l.stored.ID, "error", err)
	}
	if l.previous != nil {
		l.previous.ownServers(false) // s has the set from now on
	}
	err := s.activate(l.at.Queue, lease, l.stored.Title)
	if err == nil {
		s.renamed.Store(l.stored.Renamed)
		l.setNotice(s)
	}
	if l.previous != nil {
		if !l.inTurn {
			l.previous.viewers.Close()
		}
		l.previous.endOpenTurns(a.base, lease)
		l.previous.retire(a.base)
	}
	return err
}

// discard removes what the new session made superfluous: the backend's session that it replaces,
// and the draft of a history that was replayed.
func (l *load) discard(ctx context.Context, s *session) {
	a := l.agent
	a.sessions.Discard(ctx, l.stored.ID, s.opened.Superseded)
	if err := s.dropReplayed(ctx); err != nil {
		a.log.Warn("cannot discard the replayed history", "session", l.stored.ID, "error", err)
	}
}

// hintMoves adds to an error about missing folders of the stored session how to move it. Folders
// that only the client named get no hint: they may not be the session's.
func (l *load) hintMoves(ctx context.Context, err error) error {
	movable := []string{"cwd", keptSetting}
	for _, f := range l.params.folders {
		if f.confirmed {
			movable = append(movable, f.Setting)
		}
	}
	diskErr := l.agent.tasks.OnDisk(ctx, func() error {
		listing.HintMoves(strictjson.ViolationsOf(err), func(v strictjson.Violation, _ string) bool {
			return slices.Contains(movable, v.Field)
		}, l.agent.removedWorktree)
		return nil
	})
	return cmp.Or(diskErr, err)
}

// setNotice sets the notice that s shows at the next prompt: the previous session's notice, if that
// was never shown, and what is new about the roots.
func (l *load) setNotice(s *session) {
	known := l.stored.Keys.Roots
	switch {
	case l.previous != nil:
		s.notice, s.prompted = l.previous.notice, l.previous.prompted
	case l.stored.Turns == 0:
		known, s.prompted = workspace.Roots{}, l.stored.Title != ""
	default:
		s.prompted = true
	}
	broad := s.broadRoots(known)
	if l.inTurn {
		return // the user has just been asked about the folders
	}
	s.notice += s.droppedFolders(l.cause, l.stored.Keys) + broad
}

// takeOver stores the session's new roots and returns a new lease, which the previous session uses
// from now on, unless another process had taken it over.
func (l *load) takeOver(ctx context.Context, s *session) (sessionstore.Lease, error) {
	a := l.agent
	state := s.gate.TakeState()
	change := sessionstore.Activation{Keys: s.keys(l.stored.Keys.Roots.Cwd()), State: state,
		StateKey: a.sessions.StateKey(state)}
	ctx = context.WithoutCancel(ctx)
	replayed, err := s.takeReplayed(ctx)
	if err != nil {
		return sessionstore.Lease{}, err
	}
	if l.stored.Unstored {
		change.History = replayed
		return l.adopt(ctx, change)
	}
	lease, err := l.change(ctx, change)
	if err != nil || replayed == nil {
		return lease, err
	}
	// Another process may have added the same meanwhile. Under the lease it cannot.
	current, err := s.isReplayCurrent(ctx)
	if err != nil || !current {
		return lease, err
	}
	return l.change(ctx, sessionstore.Activation{Keys: change.Keys, Held: lease.Generation,
		History: replayed})
}

// adopt stores a session that only the backend knew, unless another process has just done so.
func (l *load) adopt(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	lease, err := l.agent.sessions.Adopt(ctx, l.stored.Session, change)
	if !errors.Is(err, sessionstore.ErrExists) {
		return lease, err
	}
	found, err := l.agent.sessions.Stored(ctx, l.params.id)
	if err == nil {
		err = l.agent.sessions.MatchCwd(ctx, l.params.roots.Cwd(), found.Keys)
	}
	if err != nil {
		return lease, err
	}
	change.History = nil
	return l.change(ctx, change)
}

// change stores a change of the session.
func (l *load) change(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	if l.previous == nil {
		return l.agent.options.Store.Activate(ctx, l.stored.ID, change)
	}
	return l.previous.takeOver(ctx, change)
}

package acp

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// opening says what a request, or a command in a turn, opens: a new session, a copy of one, or a
// stored session in place of the active one. It does not change. Its method run makes an active
// session of it.
type opening struct {
	adapter  *adapter // runs the session
	kind     openingKind
	cause    backend.Cause
	asked    sessionParams    // host.params are those in effect
	source   listing.Openable // is opened again, or copied; the zero value for a new session
	storeID  sessionstore.ID
	previous *session // the active one, which it replaces, or nil
	at       *ticket  // in the session's queue
	viewers  *viewers // of the session
	again    bool     // for all viewers: in a turn of the previous one, or while none runs
	// show shows the client of a load what the backend replays.
	show func(context.Context, backend.Update) error
}

// openingKind has what differs from one kind of openings to another.
type openingKind struct {
	// history yields what was said in the source, as far as the session continues it. It is nil if
	// nothing of that is stored.
	history readHistory
	// store stores the session that was opened in a host, and returns its lease.
	store   func(opening, context.Context, *host) (sessionstore.Lease, error)
	isFirst bool // the session was never open before
}

// readHistory reads the history of a stored session, or a part of it.
type readHistory func(
	sessionstore.Store, context.Context, sessionstore.ID,
) iter.Seq2[backend.Update, error]

var (
	// creation makes a new session.
	creation = openingKind{isFirst: true, store: opening.create}
	// copying makes a copy of a stored session, and copyingForeign one of a session that only the
	// backend knows.
	copying = openingKind{isFirst: true, history: sessionstore.Store.Finished,
		store: opening.copy}
	copyingForeign = openingKind{isFirst: true, store: opening.copyForeign}
	// reopening opens a stored session again, and adoption one that only the backend knows.
	reopening = openingKind{history: sessionstore.Store.History, store: opening.reopen}
	adoption  = openingKind{store: opening.adopt}
)

// run opens the session, stores it, and makes it active in place of the previous one. What can fail
// in the roots, in the backend or in the store comes first. If that fails, everything stays as it
// was. Then the previous session ends, even if the new one cannot become active because the
// connection has ended: that is closed then, but remains stored. run also returns a notice for the
// user, to be shown after the response.
func (o opening) run(ctx context.Context) (*session, string, error) {
	h, err := o.openHost(ctx)
	if err != nil {
		return nil, "", err
	}
	defer h.replay.drop()
	s, opened, err := o.openSession(ctx, h)
	if err != nil {
		return nil, "", err
	}
	isActive := false
	defer func() {
		if !isActive { // also after a panic
			s.retire()
		}
	}()
	ctx = context.WithoutCancel(ctx) // it is too late to give up
	defer o.discard(ctx, s, opened.Superseded)
	if err := o.endTurns(ctx); err != nil {
		o.adapter.log.Warn("cannot end the turn", "session", o.storeID, "error", err)
	}
	notice := o.succeed(s, opened.Notice)
	if isActive = s.queue.Activate(s); !isActive {
		return nil, "", backend.ErrClosed
	}
	s.start()
	return s, notice, nil
}

// openHost does the part of opening that reads disks. The session counts as an active one from now
// on, unless it replaces one. If a disk does not answer before ctx ends, it counts until then.
func (o opening) openHost(ctx context.Context) (*host, error) {
	a := o.adapter
	if o.previous != nil {
		return o.openRootsIn(ctx, o.previous.seat)
	}
	if err := a.home.owner.take(sessionSlot, a); err != nil {
		return nil, err
	}
	return o.openRootsIn(ctx, &seat{servers: a.newServers(o.at.Queue.ID)})
}

// openRootsIn is openRoots, and frees a seat that is not of the previous session if that fails.
func (o opening) openRootsIn(ctx context.Context, at *seat) (*host, error) {
	a := o.adapter
	return tasks.FromDiskOrUndo(ctx, a.tasks, func() (h *host, err error) {
		defer func() {
			switch {
			case o.previous != nil:
			case h != nil:
				at.holder.Store(h)
			default: // also after a panic
				_ = at.servers.Close(a.base)
				a.home.owner.release(sessionSlot, a)
			}
		}()
		return o.openRoots(ctx, at)
	}, func(late *host) { late.free(context.WithoutCancel(a.base)) })
}

// openRoots opens the roots, scans them, and prepares the MCP servers. What the user has allowed in
// the previous session holds in the new one.
func (o opening) openRoots(ctx context.Context, held *seat) (h *host, err error) {
	a, id := o.adapter, o.at.Queue.ID
	w, opened, err := o.asked.folders.Open(ctx, a.options.Workspace)
	if err != nil {
		if !o.kind.isFirst {
			listing.HintMoves(strictjson.ViolationsOf(err), o.asked.folders.Movable(),
				a.options.Worktrees.registry())
		}
		return nil, err
	}
	defer func() {
		if h == nil { // also after a panic
			_ = w.Close()
		}
	}()
	permits := permission.NewPermits(string(id), w, a.consents(), a.origins(),
		a.options.Permissions)
	if o.previous != nil {
		permits.Inherit(o.previous.Permits())
	}
	files := access.New(w, permits, a.options.Workspace, a.tasks)
	params := o.asked.withFolders(opened)
	change, err := a.prepareServers(held.servers, w, params.servers)
	if err != nil {
		return nil, err
	}
	found := &catalog{adapter: a, session: id, roots: files.Guarded,
		scanning: tasks.NewMutex(struct{}{})}
	if err := found.scan(ctx); err != nil {
		return nil, err
	}
	return &host{params: params, unguarded: w, adapter: a, id: id, storeID: o.storeID,
		queue: o.at.Queue, viewers: o.viewers, gate: gate.New((*session).storeState),
		replay: o.newReplay(ctx), access: files, catalog: found, seat: held, change: change}, nil
}

// openSession opens the backend's side of the session in h, and stores the session. If that fails,
// it frees h. The turns of the previous session go on, unless the backend needs them to end.
func (o opening) openSession(
	ctx context.Context, h *host,
) (s *session, opened backend.Opened, err error) {
	var later []func(context.Context) error
	defer func() {
		if s == nil { // also after a panic
			h.free(context.WithoutCancel(h.adapter.base), later...)
		}
	}()
	b, opened, err := h.adapter.backend.Open(ctx, o.activation(ctx, h), h)
	if errors.Is(err, backend.ErrUnknownSession) {
		if _, told := errors.AsType[*backend.Error](err); !told || o.source.Unstored {
			err = errUnknownSession(h.params.id)
		} // otherwise it is listed, so it matters why it cannot be opened
	}
	if err != nil {
		return nil, opened, err
	}
	later = append(later, b.Close)
	result, err := lifecycleResult(opened.Result)
	if err != nil {
		return nil, opened, err
	}
	if h.adapter.home.queues.IsClosed() { // the connection has ended
		return nil, opened, backend.ErrClosed
	}
	lease, err := o.kind.store(o, ctx, h)
	if err != nil {
		return nil, opened, err
	}
	return newSession(h, b, result, lease), opened, nil
}

// activation returns what the backend is told.
func (o opening) activation(ctx context.Context, h *host) backend.Activation {
	told := backend.Activation{Cause: o.cause, Params: h.params.rest, State: o.source.State,
		MustExist: o.adapter.sessions.OnlyBackendKnows(ctx, o.source), Unlisted: o.source.Unlisted,
		Stop:    func(context.Context) error { return h.replay.endTurns() },
		History: h.history(ctx, o.kind.history, o.source.ID)}
	if o.previous != nil {
		told.Previous = o.previous.backend
	}
	return told
}

// endTurns ends the turns of the previous session, unless one of them opens the session.
func (o opening) endTurns(ctx context.Context) error {
	if o.again {
		return nil
	}
	return o.at.Queue.EndTurns(ctx, backend.ErrCancelled)
}

// create stores a new session.
func (o opening) create(ctx context.Context, h *host) (sessionstore.Lease, error) {
	return o.adapter.options.Store.Create(ctx, o.created(h))
}

// copy stores a copy, with the finished turns of the source.
func (o opening) copy(ctx context.Context, h *host) (sessionstore.Lease, error) {
	return o.adapter.options.Store.Fork(ctx, o.source.ID, o.created(h))
}

// copyForeign stores a copy whose history only the backend has.
func (o opening) copyForeign(ctx context.Context, h *host) (sessionstore.Lease, error) {
	return o.adapter.options.Store.Adopt(ctx, o.created(h), nil)
}

// created returns the record of a new session, or of a copy.
func (o opening) created(h *host) sessionstore.Session {
	state := h.gate.TakeState()
	return sessionstore.Session{ID: h.id, Agent: o.adapter.identity(),
		Keys: keysOf(h.unguarded, h.params.folders.Cwd()), State: state,
		StateKey: o.adapter.sessions.StateKey(state), Title: o.source.Title}
}

// reopen stores the new activation of a stored session, with what the backend has replayed of it
// and the store lacks.
func (o opening) reopen(ctx context.Context, h *host) (sessionstore.Lease, error) {
	ctx = context.WithoutCancel(ctx)
	replayed, err := h.replay.take(ctx)
	if err != nil {
		return sessionstore.Lease{}, err
	}
	change := o.change(h)
	lease, err := o.takeOver(ctx, change)
	if err != nil || replayed.draft == nil {
		return lease, err
	}
	// Another process may have added the same meanwhile. Under the lease it cannot.
	stored, err := h.replay.readStored(ctx)
	if err != nil || !stored.IsSameAs(replayed.stored) {
		return lease, err
	}
	return o.takeOver(ctx, sessionstore.Activation{Keys: change.Keys, Held: lease.Generation,
		History: replayed.draft})
}

// adopt stores a session that only the backend knew, unless another process has just done so.
func (o opening) adopt(ctx context.Context, h *host) (sessionstore.Lease, error) {
	ctx = context.WithoutCancel(ctx)
	replayed, err := h.replay.take(ctx)
	if err != nil {
		return sessionstore.Lease{}, err
	}
	own, change := o.source.Session, o.change(h)
	own.Keys = change.Keys
	if change.State != nil {
		own.State, own.StateKey = change.State, change.StateKey
	}
	lease, err := o.adapter.options.Store.Adopt(ctx, own, replayed.draft)
	if !errors.Is(err, sessionstore.ErrExists) {
		return lease, err
	}
	found, err := o.adapter.sessions.Stored(ctx, o.at.Queue.ID)
	if err == nil {
		err = o.adapter.sessions.MatchCwd(ctx, o.asked.folders.Cwd(), found.Keys)
	}
	if err != nil {
		return lease, err
	}
	return o.takeOver(ctx, change)
}

// change returns what opening the source again changes in the store.
func (o opening) change(h *host) sessionstore.Activation {
	state := h.gate.TakeState()
	return sessionstore.Activation{Keys: keysOf(h.unguarded, o.source.Keys.Roots.Cwd()),
		State: state, StateKey: o.adapter.sessions.StateKey(state)}
}

// takeOver stores a change of the session. The previous session uses the new lease from now on,
// unless another process had taken it over.
func (o opening) takeOver(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	if o.previous == nil {
		return o.adapter.options.Store.Activate(ctx, o.source.ID, change)
	}
	return o.previous.record.TakeOver(ctx, change)
}

// succeed lets s follow the previous session: the seat and the MCP servers are its own, and what it
// shows comes after what the viewers were shown. said is the backend's notice. succeed returns the
// one to be shown after the response, about what the user has just done. The next prompt shows the
// rest.
func (o opening) succeed(s *session, said string) (notice string) {
	if o.previous != nil {
		s.seat.holder.CompareAndSwap(o.previous.host, s.host)
	}
	model, _ := s.backend.(backend.Sampler)
	s.seat.servers.Commit(s.change, s.host, model)
	_ = s.viewers.shown.With(context.Background(), func(now *shown) error {
		*now = shown{titled: o.source.Title != "", renamed: o.source.Renamed && !o.kind.isFirst}
		for _, u := range statesIn(s.result) { // the agent may not have kept what it was
			now.noteMode(u)
		}
		return nil
	})
	roots := s.unguarded.Opened()
	moved := s.adapter.sessions.MovedRoots(s.id, o.source.Keys, roots)
	next, told := pendingNotice{prompted: true}, o.source.Keys.Roots // that are known to the user
	switch {
	case o.kind.isFirst:
		next, told, said = pendingNotice{text: said}, workspace.Roots{}, ""
	case o.previous != nil:
		next = *o.previous.notice.Load() // what it has not shown
	case o.source.Turns == 0:
		next.prompted, told = o.source.Title != "", workspace.Roots{}
	}
	if !o.again { // otherwise the user was asked
		next.text += s.params.folders.Lost(o.source.Keys, roots, o.cause == backend.Fork) +
			broadRoots(roots, told, s.adapter.log.With("session", s.id))
	}
	s.notice.Store(&next)
	return moved + said
}

// discard removes what s has made superfluous: the previous session, and the backend's session that
// the new one replaces.
func (o opening) discard(ctx context.Context, s *session, superseded []byte) {
	if o.previous != nil {
		if !o.again { // otherwise s has its viewers
			o.previous.viewers.Close()
		}
		o.previous.retire()
	}
	if !o.kind.isFirst {
		o.adapter.sessions.Discard(ctx, s.storeID, superseded)
	}
}

// goOn lets s, which the client has opened or joined, go ahead once the response to r is on the
// wire: the notice is shown but not recorded, then the updates buffered so far are sent.
func (c *connection) goOn(r *jsonrpc.Request, s *session, notice string) {
	r.AfterResponse(func() {
		if notice != "" {
			s.viewers.show(s.adapter.base, nil, backend.Warning(backend.Text(notice)))
		}
		s.release(s.adapter.base)
		if c.HasLeft() { // while it was opening s
			s.viewers.Leave(c)
		}
		s.closeWhenIdle(c.graceNow())
	})
}

// keysOf returns the roots of a session as the store's two keys, with cwd spelled as the session
// keeps it. It drops an additional root that has the same spelling as cwd, as session/new does.
func keysOf(w *workspace.Workspace, cwd workspace.Dir) sessionstore.Keys {
	k := sessionstore.Keys{Roots: w.Roots()}
	for _, root := range w.Opened() {
		k.Real = append(k.Real, root.Recorded())
	}
	return k.WithCwd(cwd)
}

// lifecycleResult checks a backend's part of a lifecycle response and removes its session id.
func lifecycleResult(result backend.Raw) (json.RawMessage, error) {
	if len(result) == 0 {
		return json.RawMessage(`{}`), nil
	}
	_, rest, err := strictjson.Take(result, protocol.SessionID)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the agent's response is not an object")
	}
	return rest, nil
}

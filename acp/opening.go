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
	cause    backend.Cause
	asked    sessionParams    // host.params are those in effect
	source   listing.Openable // is opened again, or copied; the zero value for a new session
	previous *session         // the active one, which it replaces, or nil
	at       *ticket          // in the session's queue
	viewers  *viewers         // of the session
	again    bool             // for all viewers: in a turn of the previous one, or while none runs
	// show shows the client of a load what the backend replays.
	show func(context.Context, backend.Update) error
}

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
	defer o.discard(ctx, h, opened.Superseded)
	if err := o.endTurns(ctx); err != nil {
		o.adapter.log.Warn("cannot end the turn", "session", o.source.ID, "error", err)
	}
	notice := o.succeed(s, opened.Notice)
	if isActive = s.queue.Activate(s); !isActive {
		return nil, "", backend.ErrClosed
	}
	s.start()
	return s, notice, nil
}

// isNew reports whether the session does not exist yet.
func (o opening) isNew() bool { return o.cause == backend.New || o.cause == backend.Fork }

// openHost does the part of opening that reads disks. The session counts as an active one from now
// on, unless it replaces one. If a disk does not answer before ctx ends, it counts until then.
func (o opening) openHost(ctx context.Context) (*host, error) {
	a, isFirst := o.adapter, o.previous == nil
	if isFirst {
		if err := a.home.owner.take(sessionSlot, a); err != nil {
			return nil, err
		}
	}
	return tasks.FromDiskOrUndo(ctx, a.tasks, func() (h *host, err error) {
		defer func() {
			if h == nil && isFirst { // also after a panic
				a.home.owner.release(sessionSlot, a)
			}
		}()
		return o.openRoots(ctx)
	}, func(late *host) { late.free(context.WithoutCancel(a.base)) })
}

// openRoots opens the roots, scans them, and prepares the MCP servers. What the user has allowed in
// the previous session holds in the new one.
func (o opening) openRoots(ctx context.Context) (h *host, err error) {
	a, id := o.adapter, o.at.Queue.ID
	opened, err := o.asked.openRoots(ctx, a.options.Workspace)
	if err != nil {
		o.hintMoves(err)
		return nil, err
	}
	w := opened.unguarded
	defer func() {
		if h == nil { // also after a panic
			_ = w.Close()
		}
	}()
	permits := permission.NewPermits(string(id), w, a.consents(), a.origins(),
		a.options.Permissions)
	var held *seat
	if o.previous == nil {
		held = &seat{servers: a.newServers(id)}
	} else {
		held = o.previous.seat
		permits.Inherit(o.previous.Permits())
	}
	files := access.New(w, permits, a.options.Workspace, a.tasks)
	if err := opened.checkShown(); err != nil {
		return nil, err
	}
	change, err := a.prepareServers(held.servers, w, opened.params.servers)
	if err != nil {
		return nil, err
	}
	found := &catalog{adapter: a, session: id, roots: files.Guarded,
		scanning: tasks.NewMutex(struct{}{})}
	if err := found.scan(ctx); err != nil {
		return nil, err
	}
	storeID := id
	if !o.isNew() {
		storeID = o.source.ID
	}
	h = &host{openedRoots: opened, adapter: a, id: id, storeID: storeID, queue: o.at.Queue,
		viewers: o.viewers, gate: gate.New((*session).storeState), replay: o.newReplay(ctx),
		access: files, catalog: found, seat: held, change: change}
	if o.previous == nil {
		held.holder.Store(h)
	}
	return h, nil
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
	lease, err := o.store(ctx, h)
	if err != nil {
		return nil, opened, err
	}
	return newSession(h, b, result, lease), opened, nil
}

// activation returns what the backend is told.
func (o opening) activation(ctx context.Context, h *host) backend.Activation {
	store, source := o.adapter.options.Store, o.source
	told := backend.Activation{Cause: o.cause, Params: h.params.rest, State: source.State,
		MustExist: o.adapter.sessions.OnlyBackendKnows(ctx, source), Unlisted: source.Unlisted}
	var before iter.Seq2[backend.Update, error]
	switch {
	case o.cause == backend.New, source.Unstored:
	case o.cause == backend.Fork:
		before = sessionstore.WithoutEnds(store.Finished(ctx, source.ID))
	default:
		before = sessionstore.WithoutEnds(store.History(ctx, source.ID))
	}
	told.History = h.history(before)
	if !o.isNew() {
		told.Stop = func(context.Context) error { return h.replay.endTurns() }
	}
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

// store stores a session that was opened, and returns a lease. The previous session uses that from
// now on, unless another process had taken it over.
func (o opening) store(ctx context.Context, h *host) (sessionstore.Lease, error) {
	a := o.adapter
	if a.home.queues.IsClosed() {
		return sessionstore.Lease{}, backend.ErrClosed // the connection has ended
	}
	state := h.gate.TakeState()
	if o.isNew() {
		return o.storeNew(ctx, sessionstore.Session{ID: h.id, Agent: a.identity(),
			Keys: keysOf(h.unguarded, h.params.roots.Cwd()), State: state,
			StateKey: a.sessions.StateKey(state), Title: o.source.Title})
	}
	change := sessionstore.Activation{
		Keys:  keysOf(h.unguarded, o.source.Keys.Roots.Cwd()),
		State: state, StateKey: a.sessions.StateKey(state)}
	ctx = context.WithoutCancel(ctx)
	replayed, err := h.replay.take(ctx)
	if err != nil {
		return sessionstore.Lease{}, err
	}
	if o.source.Unstored {
		change.History = replayed
		return o.adopt(ctx, change)
	}
	lease, err := o.takeOver(ctx, change)
	if err != nil || replayed == nil {
		return lease, err
	}
	// Another process may have added the same meanwhile. Under the lease it cannot.
	current, err := h.replay.isCurrent(ctx)
	if err != nil || !current {
		return lease, err
	}
	return o.takeOver(ctx, sessionstore.Activation{Keys: change.Keys, Held: lease.Generation,
		History: replayed})
}

// storeNew stores a new session, with the finished turns of the source if it is a copy.
func (o opening) storeNew(ctx context.Context, n sessionstore.Session) (sessionstore.Lease, error) {
	store := o.adapter.options.Store
	switch {
	case o.cause == backend.New:
		return store.Create(ctx, n)
	case o.source.Unstored:
		return o.adapter.sessions.Adopt(ctx, n, sessionstore.Activation{Keys: n.Keys})
	case n.State == nil:
		n.State = o.source.State
	}
	return store.Fork(ctx, o.source.ID, n)
}

// adopt stores a session that only the backend knew, unless another process has just done so.
func (o opening) adopt(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	lease, err := o.adapter.sessions.Adopt(ctx, o.source.Session, change)
	if !errors.Is(err, sessionstore.ErrExists) {
		return lease, err
	}
	found, err := o.adapter.sessions.Stored(ctx, o.at.Queue.ID)
	if err == nil {
		err = o.adapter.sessions.MatchCwd(ctx, o.asked.roots.Cwd(), found.Keys)
	}
	if err != nil {
		return lease, err
	}
	change.History = nil
	return o.takeOver(ctx, change)
}

// takeOver stores a change of the session.
func (o opening) takeOver(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	if o.previous == nil {
		return o.adapter.options.Store.Activate(ctx, o.source.ID, change)
	}
	return o.previous.record.TakeOver(ctx, change)
}

// succeed lets s follow the previous session: the seat and the MCP servers are its own, and what it
// shows comes after what the viewers were shown. The arguments and the result are as for notices.
func (o opening) succeed(s *session, said string) (notice string) {
	if o.previous != nil {
		s.seat.holder.CompareAndSwap(o.previous.host, s.host)
	}
	model, _ := s.backend.(backend.Sampler)
	s.seat.servers.Commit(s.change, s.host, model)
	_ = s.viewers.shown.With(context.Background(), func(now *shown) error {
		*now = shown{titled: o.source.Title != "", renamed: !o.isNew() && o.source.Renamed}
		for _, u := range statesIn(s.result) { // the agent may not have kept what it was
			now.noteMode(u)
		}
		return nil
	})
	notice, next := o.notices(s.host, said)
	s.notice.Store(&next)
	return notice
}

// notices returns what the user is told of the opening: after the response what concerns what they
// have just done, and at the next prompt the rest, with what the previous session has not shown.
// said is the backend's part.
func (o opening) notices(h *host, said string) (now string, next pendingNotice) {
	opened := h.unguarded.Opened()
	now = o.adapter.sessions.MovedRoots(h.id, o.source.Keys, opened)
	told := o.source.Keys.Roots // about which the user was told before
	next.prompted = true
	switch {
	case o.isNew():
		told, next = workspace.Roots{}, pendingNotice{text: said}
	case o.previous != nil:
		next = *o.previous.notice.Load()
	case o.source.Turns == 0:
		told, next.prompted = workspace.Roots{}, o.source.Title != ""
	}
	if !o.isNew() {
		now += said
	}
	if !o.again { // otherwise the user was asked
		next.text += h.droppedFolders(o.cause, o.source.Keys) +
			broadRoots(opened, told, h.adapter.log.With("session", h.id))
	}
	return now, next
}

// discard removes what the session of h has made superfluous: the previous session, and the
// backend's session that the new one replaces.
func (o opening) discard(ctx context.Context, h *host, superseded []byte) {
	if previous := o.previous; previous != nil {
		if previous.viewers != h.viewers {
			previous.viewers.Close()
		}
		previous.retire()
	}
	if !o.isNew() {
		o.adapter.sessions.Discard(ctx, o.source.ID, superseded)
	}
}

// hintMoves adds to an error about missing folders of a stored session how to move it. Folders that
// only the client named get no hint: they may not be the session's.
func (o opening) hintMoves(err error) {
	if o.isNew() {
		return
	}
	movable := []string{"cwd", keptSetting}
	for _, f := range o.asked.folders {
		if f.confirmed {
			movable = append(movable, f.Setting)
		}
	}
	listing.HintMoves(strictjson.ViolationsOf(err), movable, o.adapter.options.Worktrees.registry())
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

package acp

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/catalog"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/replay"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
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
	storeID  sessionstore.ID
	previous *session // the active one, which it replaces, or nil
	ticket   *ticket  // in the session's queue
	viewers  *viewers
	// forAll opens the session again for all of its viewers, in a turn or while none runs: they,
	// and the turn, go on with the new one.
	forAll bool
	// show shows the client of a load what the backend replays.
	show func(context.Context, backend.Update) error
}

// isFirst reports whether the session was never open before.
func (o opening) isFirst() bool { return o.cause == backend.New || o.cause == backend.Fork }

// run opens the session, stores it, and makes it active in place of the previous one. What can fail
// comes first: if it fails, everything stays as it was.
func (o opening) run(ctx context.Context) (*session, error) {
	h, err := o.openHost(ctx)
	if err != nil {
		return nil, err
	}
	defer h.replay.Drop(ctx)
	undo := func(ctx context.Context) { h.free(ctx) } // frees what is open so far
	defer func() {
		if !h.isActive() { // also after a panic
			undo(context.WithoutCancel(ctx))
			o.endConversation(ctx, h.conversation)
		}
	}()
	b, opened, err := o.openBackend(ctx, h)
	if err != nil {
		return nil, err
	}
	closeBackend := b.Close
	undo = func(ctx context.Context) { h.free(ctx, closeBackend) }
	result, err := lifecycleResult(opened.Result)
	if err != nil {
		return nil, err
	}
	lease, err := o.store(ctx, h)
	if err != nil {
		return nil, err
	}
	s := newSession(h, b, result, lease)
	undo = func(ctx context.Context) { s.free(ctx, nil) }
	if err := o.commit(context.WithoutCancel(ctx), s, opened); err != nil { // too late to give up
		return nil, err
	}
	s.start()
	return s, nil
}

// openHost does the part of opening that reads disks. If a disk does not answer before ctx ends,
// the session counts as an active one until then.
func (o opening) openHost(ctx context.Context) (*host, error) {
	c, err := o.conversation()
	if err != nil {
		return nil, err
	}
	return tasks.FromDiskOrUndo(ctx, o.adapter.tasks,
		func() (*host, error) { return o.openRoots(ctx, c) },
		func(h *host) {
			if h != nil { // it came too late
				h.free(context.WithoutCancel(ctx))
			}
			o.endConversation(ctx, c)
		})
}

// endConversation ends the conversation of a session that was opened in vain, unless it is that of
// a previous one, which ends it when it is closed.
func (o opening) endConversation(ctx context.Context, c *conversation) {
	if o.previous == nil {
		c.end(context.WithoutCancel(ctx))
	}
}

// openRoots opens the roots, scans them, and prepares the MCP servers.
func (o opening) openRoots(ctx context.Context, c *conversation) (h *host, err error) {
	a, id := o.adapter, o.ticket.Queue.ID
	w, opened, err := o.asked.folders.Open(ctx, a.options.Workspace)
	if err != nil {
		if !o.isFirst() {
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
	params := o.asked.withFolders(opened)
	permits := permission.NewPermits(c.allowed, w, a.consents(), a.origins(),
		func(cwd workspace.Dir) *permission.Permissions {
			return (*permission.Permissions)(a.options.Permissions(cwd))
		})
	guarded := permits.Guarded()
	change, err := a.prepareServers(c.servers, w, params.servers)
	if err != nil {
		return nil, err
	}
	found, err := catalog.Scan(ctx, catalog.Options{Roots: guarded,
		Wait: a.options.tuning.RescanWait, Base: a.base, Tasks: a.tasks,
		Log: a.log.With("session", id)})
	if err != nil {
		return nil, err
	}
	return &host{replay: o.newReplay(), keepsTurns: o.forAll, change: change, common: &common{
		adapter: a, id: id, storeID: o.storeID, queue: o.ticket.Queue, conversation: c,
		viewers: o.viewers, gate: gate.New((*session).storeState),
		params: params, unguarded: w, catalog: found,
		access: access.New(access.Options{Session: string(id), Agent: a.info().Profile,
			Restricted: a.info().Restricted, Roots: w, Guarded: guarded, Open: a.options.Workspace,
			Permits: permits, Servers: params.servers, Catalog: found.Found, Tasks: a.tasks,
			Log: a.log})}}, nil
}

// openBackend opens the backend's part of the session. The turns of the previous one go on, unless
// the backend needs them to end.
func (o opening) openBackend(
	ctx context.Context, h *host,
) (backend.Session, backend.Opened, error) {
	b, opened, err := o.adapter.backend.Open(ctx, o.activation(ctx, h), h)
	if errors.Is(err, backend.ErrUnknownSession) {
		if _, told := errors.AsType[*backend.Error](err); !told || o.source.Unstored {
			err = errUnknownSession(h.params.id)
		} // otherwise it is listed, so it matters why it cannot be opened
	}
	return b, opened, err
}

// activation returns what the backend is told.
func (o opening) activation(ctx context.Context, h *host) backend.Activation {
	activation := backend.Activation{Cause: o.cause, Params: h.params.rest, State: o.source.State,
		MustExist: o.adapter.sessions.OnlyBackendKnows(ctx, o.source), Unlisted: o.source.Unlisted,
		Stop: h.stopPrevious, History: h.history(o.history(ctx))}
	if o.previous != nil {
		activation.Previous = o.previous.backend
	}
	return activation
}

// newReplay returns what the backend may replay of the source.
func (o opening) newReplay() *replay.Replay {
	a := o.adapter
	var stored sessionstore.ID
	if !o.source.Unstored {
		stored = o.source.ID
	}
	return replay.New(replay.Options{Cause: o.cause, Stored: stored, Show: o.show,
		Store: a.options.Store, Recorder: a.options.tuning.Recorder,
		Subagents: record.NewSubagentLimit(a.options.tuning.SubagentBytes, a.log), Tasks: a.tasks,
		Log: a.log.With("session", o.source.ID)})
}

// history returns what was said in the source, as far as the session continues it. It is nil if
// nothing of that is stored.
func (o opening) history(ctx context.Context) iter.Seq2[backend.Update, error] {
	switch {
	case o.cause == backend.New, o.source.Unstored:
		return nil
	case o.cause == backend.Fork:
		return o.adapter.options.Store.Finished(ctx, o.source.ID)
	}
	return o.adapter.options.Store.History(ctx, o.source.ID)
}

// store stores the session that was opened in h, and returns its lease.
func (o opening) store(ctx context.Context, h *host) (sessionstore.Lease, error) {
	store := o.adapter.options.Store
	switch {
	case o.adapter.home.queues.IsClosed(): // the connection has ended
		return sessionstore.Lease{}, backend.ErrClosed
	case o.cause == backend.New:
		return store.Create(ctx, o.created(h))
	case o.cause == backend.Fork && o.source.Unstored: // only the backend has the history
		return store.Adopt(ctx, o.created(h), nil)
	case o.cause == backend.Fork:
		return store.Fork(ctx, o.source.ID, o.created(h))
	}
	ctx = context.WithoutCancel(ctx)
	past, err := h.replay.Take(ctx)
	switch {
	case err != nil:
		return sessionstore.Lease{}, err
	case o.source.Unstored:
		return o.adopt(ctx, h, past)
	}
	return o.reopen(ctx, h, past)
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
func (o opening) reopen(
	ctx context.Context, h *host, past sessionstore.Draft,
) (sessionstore.Lease, error) {
	change := o.change(h)
	lease, err := o.takeOver(ctx, change)
	if err != nil || past == nil {
		return lease, err
	}
	// Another process may have added the same meanwhile. Under the lease it cannot.
	if follows, err := h.replay.Follows(ctx); err != nil || !follows {
		return lease, err
	}
	return o.takeOver(ctx, sessionstore.Activation{Keys: change.Keys, Held: lease.Generation,
		History: past})
}

// adopt stores a session that only the backend knew, unless another process has just done so.
func (o opening) adopt(
	ctx context.Context, h *host, past sessionstore.Draft,
) (sessionstore.Lease, error) {
	own, change := o.source.Session, o.change(h)
	own.Keys = change.Keys
	if change.State != nil {
		own.State, own.StateKey = change.State, change.StateKey
	}
	lease, err := o.adapter.options.Store.Adopt(ctx, own, past)
	if !errors.Is(err, sessionstore.ErrExists) {
		return lease, err
	}
	found, err := o.adapter.sessions.Stored(ctx, o.ticket.Queue.ID)
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

// commit makes s active in place of the previous session, which ends even if s cannot become active
// because the connection has ended: s remains stored then.
func (o opening) commit(ctx context.Context, s *session, opened backend.Opened) error {
	defer o.discard(ctx, s.storeID, opened.Superseded)
	if err := s.host.endPrevious(ctx); err != nil {
		o.adapter.log.Warn("cannot end the turn", "session", o.storeID, "error", err)
	}
	o.succeed(ctx, s, opened.Notice)
	if !s.queue.Activate(s) {
		return backend.ErrClosed
	}
	return nil
}

// succeed lets s follow the previous session: the MCP servers are those that it needs, and what it
// shows comes after what the viewers were shown. said is the backend's notice.
func (o opening) succeed(ctx context.Context, s *session, said string) {
	model, _ := s.backend.(backend.Sampler)
	s.conversation.servers.Commit(s.host.change, s.host, model)
	_ = s.viewers.Shown.With(ctx, func(now *transcript.Shown) error {
		*now = transcript.Shown{Titled: o.source.Title != "",
			Renamed: o.source.Renamed && !o.isFirst()}
		for _, u := range transcript.StatesIn(s.result) { // the agent may not have kept what it was
			now.NoteMode(u)
		}
		return nil
	})
	roots, log := s.unguarded.Opened(), s.adapter.log.With("session", s.id)
	pending := &s.conversation.notice
	now, next := o.notices(pending.Load(), findings{
		moved:   s.adapter.sessions.MovedRoots(s.id, o.source.Keys, roots),
		said:    said,
		dropped: s.params.folders.Lost(o.source.Keys, roots, o.cause == backend.Fork),
		broad:   func(known workspace.Roots) string { return broadRoots(roots, known, log) },
	})
	pending.Store(&next)
	s.notice = now
}

// discard removes what the new session has made superfluous: the previous one, and the backend's
// session that the new one replaces.
func (o opening) discard(ctx context.Context, id sessionstore.ID, superseded []byte) {
	if o.previous != nil {
		if !o.forAll { // otherwise the new session has its viewers
			o.previous.viewers.Close()
		}
		o.previous.free(ctx, nil)
	}
	if !o.isFirst() {
		o.adapter.sessions.Discard(ctx, id, superseded)
	}
}

// goOn lets s, which the client has opened, go ahead once the response to r is on the wire: its
// notice is shown but not recorded, then the updates buffered so far are sent.
func (c *connection) goOn(r *jsonrpc.Request, s *session) {
	r.AfterResponse(func() {
		if s.notice != "" {
			s.viewers.ShowAll(s.adapter.base, backend.Warning(backend.Text(s.notice)))
		}
		s.release(s.adapter.base)
	})
	c.stay(r, s)
}

// stay sees to it that s, which the client has opened or joined, ends like any other if the client
// has left meanwhile.
func (c *connection) stay(r *jsonrpc.Request, s *session) {
	r.AfterResponse(func() {
		if c.HasLeft() {
			s.viewers.Leave(c)
		}
		s.closeWhenIdle(c.graceNow())
	})
}

// reopenForAll opens the session with other params, for the viewers that it has. It returns what
// they should be told.
func (s *session) reopenForAll(
	ctx context.Context, ticket *ticket, stored listing.Openable, p sessionParams,
) (next *session, news []backend.Update, err error) {
	p.id = s.id
	o := opening{adapter: s.adapter, cause: backend.Resume, asked: p, source: stored,
		storeID: stored.ID, previous: s, ticket: ticket, viewers: s.viewers, forAll: true}
	next, err = o.run(ctx)
	if err != nil {
		return nil, nil, err
	}
	shown := next.gate.Kinds()
	next.release(next.adapter.base)
	if next.notice != "" {
		news = append(news, backend.Warning(backend.Text(next.notice)))
	}
	for _, u := range transcript.StatesIn(next.result) {
		if !shown[u.Kind] {
			news = append(news, u)
		}
	}
	return next, news, nil
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

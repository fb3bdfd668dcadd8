package acp

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"

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
	at       *ticket  // in the session's queue
	viewers  *viewers // of the session
	// forAll opens the session again for all of its viewers, in a turn or while none runs: they,
	// and the turn, go on with the new one.
	forAll bool
	// show shows the client of a load what the backend replays.
	show func(context.Context, backend.Update) error
}

// isFirst reports whether the session was never open before.
func (o opening) isFirst() bool { return o.cause == backend.New || o.cause == backend.Fork }

// run opens the session, stores it, and makes it active in place of the previous one. What can fail
// in the roots, in the backend or in the store comes first. If that fails, everything stays as it
// was. Then the previous session ends, even if the new one cannot become active because the
// connection has ended: that is closed then, but remains stored. run also returns a notice for the
// user, to be shown after the response.
func (o opening) run(ctx context.Context) (*session, string, error) {
	s, err := o.openHost(ctx)
	if err != nil {
		return nil, "", err
	}
	defer s.replay.Drop(ctx)
	isActive, last := false, o.previous == nil
	defer func() {
		if !isActive { // also after a panic
			s.free(context.WithoutCancel(o.adapter.base), nil, last)
		}
	}()
	opened, err := o.openBackend(ctx, s)
	if err != nil {
		return nil, "", err
	}
	ctx = context.WithoutCancel(ctx) // it is too late to give up
	last = true                      // also if s cannot become active
	defer o.discard(ctx, s, opened.Superseded)
	if err := o.endTurns(ctx); err != nil {
		o.adapter.log.Warn("cannot end the turn", "session", o.storeID, "error", err)
	}
	notice := o.succeed(s, opened.Notice)
	isActive = s.queue.Activate(s)
	if !isActive {
		return nil, "", backend.ErrClosed
	}
	s.start()
	return s, notice, nil
}

// openHost does the part of opening that reads disks. If a disk does not answer before ctx ends,
// the session counts as an active one until then.
func (o opening) openHost(ctx context.Context) (*session, error) {
	c, err := o.conversation()
	if err != nil {
		return nil, err
	}
	s := &session{host: &host{conversation: c, storeID: o.storeID, viewers: o.viewers,
		gate: gate.New((*session).storeState), replay: o.newReplay(), stop: o.stopOnce(ctx)}}
	return tasks.FromDiskOrUndo(ctx, o.adapter.tasks,
		func() (*session, error) { return s, o.openRoots(ctx, s.host) },
		func(*session) {
			s.free(context.WithoutCancel(o.adapter.base), nil, o.previous == nil)
		})
}

// openRoots opens the roots of h, scans them, and prepares the MCP servers.
func (o opening) openRoots(ctx context.Context, h *host) error {
	a := o.adapter
	w, opened, err := o.asked.folders.Open(ctx, a.options.Workspace)
	if err != nil {
		if !o.isFirst() {
			listing.HintMoves(strictjson.ViolationsOf(err), o.asked.folders.Movable(),
				a.options.Worktrees.registry())
		}
		return err
	}
	h.params, h.unguarded = o.asked.withFolders(opened), w
	permits := permission.NewPermits(h.allowed, w, a.consents(), a.origins(),
		func(cwd workspace.Dir) *permission.Permissions {
			return (*permission.Permissions)(a.options.Permissions(cwd))
		})
	guarded := permits.Guard(w)
	if h.change, err = a.prepareServers(h.servers, w, h.params.servers); err != nil {
		return err
	}
	h.catalog, err = catalog.Scan(ctx, catalog.Options{Roots: guarded,
		Wait: a.options.tuning.RescanWait, Base: a.base, Tasks: a.tasks,
		Log: a.log.With("session", h.id)})
	if err != nil {
		return err
	}
	h.access = access.New(access.Options{Session: string(h.id), Agent: a.info().Profile,
		Restricted: a.info().Restricted, Roots: w, Guarded: guarded, Open: a.options.Workspace,
		Permits: permits, Servers: h.params.servers, Catalog: h.catalog.Found, Tasks: a.tasks,
		Log: a.log})
	return nil
}

// openBackend opens the backend's side of s, and stores the session. The turns of the previous
// session go on, unless the backend needs them to end.
func (o opening) openBackend(ctx context.Context, s *session) (backend.Opened, error) {
	b, opened, err := s.adapter.backend.Open(ctx, o.activation(ctx, s.host), s.host)
	if errors.Is(err, backend.ErrUnknownSession) {
		if _, told := errors.AsType[*backend.Error](err); !told || o.source.Unstored {
			err = errUnknownSession(s.params.id)
		} // otherwise it is listed, so it matters why it cannot be opened
	}
	if err != nil {
		return opened, err
	}
	s.backend = b
	if s.result, err = lifecycleResult(opened.Result); err != nil {
		return opened, err
	}
	if s.adapter.home.queues.IsClosed() { // the connection has ended
		return opened, backend.ErrClosed
	}
	lease, err := o.store(ctx, s.host)
	if err != nil {
		return opened, err
	}
	s.prepare(lease)
	return opened, nil
}

// activation returns what the backend is told.
func (o opening) activation(ctx context.Context, h *host) backend.Activation {
	told := backend.Activation{Cause: o.cause, Params: h.params.rest, State: o.source.State,
		MustExist: o.adapter.sessions.OnlyBackendKnows(ctx, o.source), Unlisted: o.source.Unlisted,
		Stop:    func(context.Context) error { return h.stop() },
		History: h.history(o.history(ctx))}
	if o.previous != nil {
		told.Previous = o.previous.backend
	}
	return told
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
		Children: record.NewChildLimit(a.options.tuning.ChildBytes, a.log), Tasks: a.tasks,
		Log: a.log.With("session", o.source.ID)})
}

// stopOnce returns endTurns, which is done once. ctx is that of the request.
func (o opening) stopOnce(ctx context.Context) func() error {
	o.previous = nil // otherwise the new session would keep it in memory
	return sync.OnceValue(func() error { return o.endTurns(ctx) })
}

// endTurns ends the turns of the previous session, unless one of them opens the session.
func (o opening) endTurns(ctx context.Context) error {
	if o.forAll {
		return nil
	}
	return o.at.Queue.EndTurns(ctx, backend.ErrCancelled)
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

// succeed lets s follow the previous session: the MCP servers are those that it needs, and what it
// shows comes after what the viewers were shown. said is the backend's notice. succeed returns the
// one to be shown after the response.
func (o opening) succeed(s *session, said string) (notice string) {
	model, _ := s.backend.(backend.Sampler)
	s.servers.Commit(s.change, s.host, model)
	_ = s.viewers.Shown.With(context.Background(), func(now *transcript.Shown) error {
		*now = transcript.Shown{Titled: o.source.Title != "",
			Renamed: o.source.Renamed && !o.isFirst()}
		for _, u := range transcript.StatesIn(s.result) { // the agent may not have kept what it was
			now.NoteMode(u)
		}
		return nil
	})
	roots, log := s.unguarded.Opened(), s.adapter.log.With("session", s.id)
	notice, next := o.notices(s.notice.Load(), findings{
		moved:   s.adapter.sessions.MovedRoots(s.id, o.source.Keys, roots),
		said:    said,
		dropped: s.params.folders.Lost(o.source.Keys, roots, o.cause == backend.Fork),
		broad:   func(known workspace.Roots) string { return broadRoots(roots, known, log) },
	})
	s.notice.Store(&next)
	return notice
}

// discard removes what s has made superfluous: the previous session, whose conversation s goes on
// with, and the backend's session that the new one replaces.
func (o opening) discard(ctx context.Context, s *session, superseded []byte) {
	if o.previous != nil {
		if !o.forAll { // otherwise s has its viewers
			o.previous.viewers.Close()
		}
		o.previous.free(context.WithoutCancel(o.adapter.base), nil, false)
	}
	if !o.isFirst() {
		o.adapter.sessions.Discard(ctx, s.storeID, superseded)
	}
}

// goOn lets s, which the client has opened or joined, go ahead once the response to r is on the
// wire: the notice is shown but not recorded, then the updates buffered so far are sent.
func (c *connection) goOn(r *jsonrpc.Request, s *session, notice string) {
	r.AfterResponse(func() {
		if notice != "" {
			s.viewers.ShowAll(s.adapter.base, backend.Warning(backend.Text(notice)))
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

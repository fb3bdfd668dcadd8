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
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// opening says what a request, or a command in a turn, opens: a new session, a copy of one, or a
// stored session in place of the active one. Its method run makes an active session of it.
type opening struct {
	agent    *agent // runs the session
	cause    backend.Cause
	address  address // of the session, for the client
	params   sessionParams
	source   listing.Openable // is opened again, or copied; the zero value for a new session
	at       *ticket          // in the session's queue
	previous *session         // the active session, nil if there is none and after run
	from     *connection      // of the client that opens it, nil if it is reopened for all viewers
	pace     pace             // of what a load replays

	change *mcpclient.Change // of the MCP servers, for replacePrevious
	notice string            // for the user, after the response
}

// run opens the session, stores it, and makes it active in place of the previous one. What can fail
// in the roots, in the backend or in the store comes first. If that fails, everything stays as it
// was. Then the previous session ends, even if the new one cannot become active because the
// connection has ended: that is closed then, but remains stored.
func (o *opening) run(ctx context.Context) (*session, error) {
	defer func() { o.previous = nil }() // the session keeps o
	s, err := o.newSession(ctx)
	if err != nil {
		return nil, err
	}
	previous := o.previous // also if a disk answers after run
	err = o.agent.tasks.OnDiskOrUndo(ctx,
		func() error { return o.openRoots(ctx, s, previous) }, s.retire)
	if err != nil {
		return nil, err
	}
	active := false
	defer func() {
		if !active { // also after a panic
			s.retire()
		}
	}()
	if err := o.openBackend(ctx, s); err != nil {
		return nil, err
	}
	lease, err := o.store(ctx, s)
	if err != nil {
		return nil, err
	}
	s.startRecord(lease)
	ctx = context.WithoutCancel(ctx) // it is too late to give up
	defer o.discard(ctx, s)
	o.replacePrevious(ctx, s)
	if active = o.agent.home.queues.Activate(s.queue, s); !active {
		return nil, backend.ErrClosed
	}
	o.start(s)
	return s, nil
}

// newSession returns the session with the parts that are known before anything is opened. It counts
// as an active one from now on, unless it replaces one.
func (o *opening) newSession(ctx context.Context) (*session, error) {
	id := o.address.id
	s := &session{id: id, storeID: id, agent: o.agent, queue: o.at.Queue, params: o.params,
		gate: gate.New()}
	s.notice.Store(new(pendingNotice))
	if !o.isNew() {
		s.storeID, s.replay = o.source.ID, newReplay(ctx, o)
	}
	s.budgets = &budgets{agent: o.agent, session: s.storeID, cwd: o.params.roots.Cwd()}
	if o.from != nil {
		s.viewers = newViewers(o.agent, o.from, o.address)
	} else {
		s.viewers = o.previous.viewers
	}
	if o.previous == nil {
		if err := o.agent.home.owner.take(sessionSlot, o.agent); err != nil {
			return nil, err
		}
		s.holds.Store(true)
	}
	return s, nil
}

// startRecord begins to record s, which is stored under a lease.
func (s *session) startRecord(l sessionstore.Lease) {
	a := s.agent
	s.record = record.New(record.Options{Store: a.options.Store, Lease: l,
		Append: a.appendSegment, Failed: s.failed, Recorder: a.options.tuning.Recorder,
		Children: a.newChildLimit(), Tasks: a.tasks})
	s.spending = metering.NewSpending(metering.Options{ID: s.storeID, Store: a.options.Store,
		Write: s.record.Write, Usage: a.info().Usage, Tasks: a.tasks, Log: a.log})
	s.transcript = &transcript{id: s.id, agent: a, viewers: s.viewers, permits: s.Permits(),
		record: s.record, spending: s.spending}
}

// isNew reports whether the session does not exist yet.
func (o *opening) isNew() bool { return o.cause == backend.New || o.cause == backend.Fork }

// openRoots does the part of opening that reads disks: it opens the roots, scans them, and prepares
// the MCP servers. What the user has allowed in the previous session holds in s.
func (o *opening) openRoots(ctx context.Context, s, previous *session) (err error) {
	a := s.agent
	s.workspace, err = s.params.openRoots(ctx, a.options.Workspace)
	if err != nil {
		o.hintMoves(err)
		return err
	}
	permits := permission.NewPermits(string(s.id), s.workspace, a.consents(), a.origins(),
		a.options.Permissions)
	if previous != nil {
		permits.Inherit(previous.Permits())
	}
	s.access = access.New(s.workspace, permits, a.options.Workspace, a.tasks)
	if err := s.params.checkShown(s.workspace); err != nil {
		return err
	}
	if err := o.openServers(s, previous); err != nil {
		return err
	}
	s.catalog = &catalog{agent: a, session: s.id, roots: s.Workspace(),
		scanning: tasks.Guard[struct{}]()}
	return s.catalog.scan(ctx)
}

// openBackend opens the backend's side of the session. The turns of the previous session go on,
// unless the backend needs them to end.
func (o *opening) openBackend(ctx context.Context, s *session) (err error) {
	a := o.agent
	s.backend, s.opened, err = a.backend.Open(ctx, o.activation(ctx, s), s)
	if errors.Is(err, backend.ErrUnknownSession) {
		if _, told := errors.AsType[*backend.Error](err); told && !o.source.Unstored {
			return err // it is listed, so it matters why it cannot be opened
		}
		return errUnknownSession(o.params.id)
	}
	if err != nil {
		return err
	}
	if a.home.queues.IsClosed() {
		return backend.ErrClosed // the connection has ended: store nothing
	}
	s.opened.Result, err = lifecycleResult(s.opened.Result)
	return err
}

// activation returns what the backend is told.
func (o *opening) activation(ctx context.Context, s *session) backend.Activation {
	store, source := o.agent.options.Store, o.source
	told := backend.Activation{Cause: o.cause, Params: s.params.rest, State: source.State,
		MustExist: o.agent.sessions.OnlyBackendKnows(ctx, source), Unlisted: source.Unlisted}
	var before iter.Seq2[backend.Update, error]
	switch {
	case o.cause == backend.New, source.Unstored:
	case o.cause == backend.Fork:
		before = sessionstore.WithoutEnds(store.Finished(ctx, source.ID))
	default:
		before = sessionstore.WithoutEnds(store.History(ctx, source.ID))
	}
	told.History = s.history(before)
	if s.replay != nil {
		told.Stop = func(context.Context) error { return s.replay.endTurns() }
	}
	if o.previous != nil {
		told.Previous = o.previous.backend
	}
	return told
}

// endTurns ends the turns of the previous session, unless one of them opens the session.
func (o *opening) endTurns(ctx context.Context) error {
	if o.from == nil {
		return nil
	}
	return o.at.Queue.EndTurns(ctx, backend.ErrCancelled)
}

// store stores a session that was opened, and returns a lease. The previous session uses that from
// now on, unless another process had taken it over.
func (o *opening) store(ctx context.Context, s *session) (sessionstore.Lease, error) {
	a, state := o.agent, s.gate.TakeState()
	if o.isNew() {
		return o.storeNew(ctx, sessionstore.Session{ID: s.id, Agent: a.identity(),
			Keys: keysOf(s.workspace, s.params.roots.Cwd()), State: state,
			StateKey: a.sessions.StateKey(state), Title: o.source.Title})
	}
	change := sessionstore.Activation{
		Keys:  keysOf(s.workspace, o.source.Keys.Roots.Cwd()),
		State: state, StateKey: a.sessions.StateKey(state)}
	ctx = context.WithoutCancel(ctx)
	replayed, err := s.replay.take(ctx)
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
	current, err := s.replay.isCurrent(ctx)
	if err != nil || !current {
		return lease, err
	}
	return o.takeOver(ctx, sessionstore.Activation{Keys: change.Keys, Held: lease.Generation,
		History: replayed})
}

// storeNew stores a new session, with the finished turns of the source if it is a copy.
func (o *opening) storeNew(
	ctx context.Context, n sessionstore.Session,
) (sessionstore.Lease, error) {
	store := o.agent.options.Store
	switch {
	case o.cause == backend.New:
		return store.Create(ctx, n)
	case o.source.Unstored:
		return o.agent.sessions.Adopt(ctx, n, sessionstore.Activation{Keys: n.Keys})
	case n.State == nil:
		n.State = o.source.State
	}
	return store.Fork(ctx, o.source.ID, n)
}

// adopt stores a session that only the backend knew, unless another process has just done so.
func (o *opening) adopt(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	lease, err := o.agent.sessions.Adopt(ctx, o.source.Session, change)
	if !errors.Is(err, sessionstore.ErrExists) {
		return lease, err
	}
	found, err := o.agent.sessions.Stored(ctx, o.address.id)
	if err == nil {
		err = o.agent.sessions.MatchCwd(ctx, o.params.roots.Cwd(), found.Keys)
	}
	if err != nil {
		return lease, err
	}
	change.History = nil
	return o.takeOver(ctx, change)
}

// takeOver stores a change of the session.
func (o *opening) takeOver(
	ctx context.Context, change sessionstore.Activation,
) (sessionstore.Lease, error) {
	if o.previous == nil {
		return o.agent.options.Store.Activate(ctx, o.source.ID, change)
	}
	return o.previous.record.TakeOver(ctx, change)
}

// replacePrevious ends the turns of the previous session, if there is one. Afterwards s has what
// that had: it counts as the active one, the MCP servers are its own, and what it shows comes after
// what the viewers were shown.
func (o *opening) replacePrevious(ctx context.Context, s *session) {
	if err := o.endTurns(ctx); err != nil {
		o.agent.log.Warn("cannot end the turn", "session", o.source.ID, "error", err)
	}
	if o.previous != nil {
		s.holds.Store(o.previous.holds.Swap(false))
	}
	model, _ := s.backend.(backend.Sampler)
	s.servers.Commit(o.change, s, model)
	_ = s.viewers.shown.With(context.Background(), func(now *shown) error {
		*now = shown{titled: o.source.Title != "", renamed: !o.isNew() && o.source.Renamed}
		for _, u := range statesIn(s.opened.Result) { // the agent may not have kept what it was
			now.noteMode(u)
		}
		return nil
	})
}

// start lets s, which has become active, do what has waited for that: afterwards the state that the
// backend saved meanwhile is stored, its commands are known, and s has a notice for the user.
func (o *opening) start(s *session) {
	a := o.agent
	ctx, cancel := tasks.Commit(a.base)
	defer cancel()
	err := s.gate.Activate(func(late []byte) error { return s.storeState(ctx, late) })
	if err != nil {
		a.log.Warn("cannot save the agent's state", "session", s.id, "error", err)
	}
	a.observeOpened(s)
	s.announceCommands()
	o.notify(s)
}

// notify decides what the user is told of the opening: after the response what concerns what they
// have just done, and at the next prompt the rest, with what the previous session has not shown.
func (o *opening) notify(s *session) {
	o.notice = o.agent.sessions.MovedRoots(s.id, o.source.Keys, s.workspace.Opened())
	told := o.source.Keys.Roots // about which the user was told before
	next := pendingNotice{prompted: true}
	switch {
	case o.isNew():
		told, next = workspace.Roots{}, pendingNotice{text: s.opened.Notice}
	case o.previous != nil:
		next = *o.previous.notice.Load()
	case o.source.Turns == 0:
		told, next.prompted = workspace.Roots{}, o.source.Title != ""
	}
	if !o.isNew() {
		o.notice += s.opened.Notice
	}
	if o.from != nil { // otherwise the user was asked
		opened := s.workspace.Opened()
		next.text += s.params.droppedFolders(opened, o.cause, o.source.Keys) +
			broadRoots(opened, told, s.agent.log.With("session", s.id))
	}
	s.notice.Store(&next)
}

// discard removes what s has made superfluous: the previous session, the backend's session that the
// new one replaces, and the draft of a history that was replayed.
func (o *opening) discard(ctx context.Context, s *session) {
	if previous := o.previous; previous != nil {
		if previous.viewers != s.viewers {
			previous.viewers.Close()
		}
		previous.retire()
	}
	if !o.isNew() {
		o.agent.sessions.Discard(ctx, o.source.ID, s.opened.Superseded)
	}
	if err := s.replay.drop(ctx); err != nil {
		o.agent.log.Warn("cannot discard the replayed history", "session", o.source.ID,
			"error", err)
	}
}

// hintMoves adds to an error about missing folders of a stored session how to move it. Folders that
// only the client named get no hint: they may not be the session's.
func (o *opening) hintMoves(err error) {
	if o.isNew() {
		return
	}
	movable := []string{"cwd", keptSetting}
	for _, f := range o.params.folders {
		if f.confirmed {
			movable = append(movable, f.Setting)
		}
	}
	listing.HintMoves(strictjson.ViolationsOf(err), movable, o.agent.options.Worktrees.registry())
}

// goOn lets the session go ahead once the response to r is on the wire: the notice is shown but not
// recorded, then the updates buffered so far are sent.
func (o *opening) goOn(r *jsonrpc.Request, s *session) {
	r.AfterResponse(func() {
		if o.notice != "" {
			s.viewers.show(s.agent.base, nil, backend.Warning(backend.Text(o.notice)))
		}
		s.release(s.agent.base)
		if o.from.HasLeft() { // while it was opening s
			s.viewers.Leave(o.from)
		}
		s.closeWhenIdle(o.from.graceNow())
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

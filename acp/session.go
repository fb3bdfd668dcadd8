package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/budget"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// session is one activation of a session: its conversation is open in this process. It implements
// [turns.Session]. opening.run makes it: its host gets the roots, then the backend opens its part,
// then the store. close ends it.
type session struct {
	*host
	backend    backend.Session // nil until it is open, and so is what follows
	result     json.RawMessage // the backend's part of the response that opened it
	record     *record.Record
	spending   *metering.Spending
	transcript *transcript.Transcript[*connection]
	budgets    *budget.Budgets

	// inBackend is held while backend runs a method. Its methods must not overlap, and may not wait
	// for a client.
	inBackend sync.Mutex
	freed     sync.Once
}

// prepare prepares s, which the backend and the store have opened, to record what is said.
func (s *session) prepare(l sessionstore.Lease) {
	a, cwd := s.adapter, s.params.folders.Cwd()
	s.budgets = &budget.Budgets{
		Session: s.storeID, All: func() []Budget { return a.options.Budgets(cwd) },
		Store: a.options.Store, Origins: a.origins, Exceeds: &s.exceeds, Log: a.log}
	s.record = record.New(record.Options{Store: a.options.Store, Lease: l,
		Failed: s.failed, Recorder: a.options.tuning.Recorder,
		Children: record.NewChildLimit(a.options.tuning.ChildBytes, a.log), Tasks: a.tasks})
	s.spending = metering.NewSpending(metering.Options{ID: s.storeID, Store: a.options.Store,
		Write: s.record.Write, Usage: a.info().Usage, Tasks: a.tasks, Log: a.log})
	var unruled string
	if info := a.info().Info; info.AsksLittle != "" {
		unruled = whyUnruled(info)
	}
	s.transcript = &transcript.Transcript[*connection]{
		Audience: s.viewers.Audience, Permits: s.access.Permits, Record: s.record,
		Spending:  s.spending,
		Charged:   func(charges []sessionstore.Charge) { a.connection.observeUsage(s.id, charges) },
		Worktrees: a.options.Worktrees.Dir != "", Lasts: a.home.isShared(), Unruled: unruled,
		Warned: &s.warned, Log: a.log.With("session", s.id)}
}

// start lets s, which has become active, do what has waited for that: afterwards the state that the
// backend saved meanwhile is stored, and its commands are known.
func (s *session) start() {
	a := s.adapter
	ctx, cancel := tasks.Commit(a.base)
	defer cancel()
	if err := s.gate.Activate(ctx, s); err != nil {
		a.log.Warn("cannot save the agent's state", "session", s.id, "error", err)
	}
	opened := OpenEvent{Session: s.id}
	for _, root := range s.unguarded.Opened() {
		opened.Roots = append(opened.Roots, root.Real)
	}
	a.connection.observe(opened)
	s.announceCommands()
}

// release sends the buffered updates. The lifecycle response is on the wire.
func (s *session) release(ctx context.Context) {
	for _, u := range s.gate.Advance(gate.Releasing) {
		if err := s.transcript.Send(ctx, u, transcript.ShowFirst); err != nil {
			s.adapter.log.Debug("update not sent", "session", s.id, "error", err)
		}
	}
	s.gate.Advance(gate.Live)
}

// storeState stores the backend's state. If the store rejects it, the session ends in the
// background, because ending it may wait for the caller.
func (s *session) storeState(ctx context.Context, state []byte) error {
	key := s.adapter.sessions.StateKey(state)
	err := s.record.Write(func(l sessionstore.Lease) error {
		return s.adapter.options.Store.SaveState(ctx, l, state, key)
	})
	s.spending.SetSource(key)
	if err != nil {
		s.adapter.tasks.Go(func() { s.failed(err) })
	}
	return err
}

// announceCommands announces the adapter's commands for a backend that has not announced any
// commands, now or earlier.
func (s *session) announceCommands() {
	if s.gate.Kinds()[sessionstore.AvailableCommandsUpdate] {
		return
	}
	states, err := s.adapter.options.Store.States(s.adapter.base, s.storeID)
	if err != nil {
		s.adapter.log.Debug("cannot read the announced commands", "session", s.id, "error", err)
		return
	}
	for _, u := range states {
		if u.Kind == sessionstore.AvailableCommandsUpdate {
			s.transcript.Announce(u) // it is in effect
			return
		}
	}
	_, _ = s.gate.Buffer(backend.NewUpdate(
		sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{
			AvailableCommands: []sdk.AvailableCommand{},
		}}))
}

// watchLease ends the session soon after another process has taken it over, until ctx ends: also if
// the agent says nothing, so that nothing is stored.
func (s *session) watchLease(ctx context.Context) {
	s.adapter.tasks.Go(func() {
		for range pause.Every(ctx, s.adapter.options.tuning.LeaseCheck) {
			if err := s.record.Check(ctx); record.Gone(err) {
				s.failed(err)
				return
			}
		}
	})
}

// WithBackend implements [turns.Session].
func (s *session) WithBackend(do func(backend.Session)) {
	s.inBackend.Lock()
	defer s.inBackend.Unlock()
	do(s.backend)
}

// Cancel implements [turns.Session]. Open questions end with the last turn, because an agent may
// end it only once they are answered. A panic in the backend is logged.
func (s *session) Cancel(params backend.Raw) {
	_ = s.adapter.tasks.Guard("cancel", func() error {
		s.backend.Cancel(params)
		return nil
	})
	if !s.inTurn() {
		s.viewers.Stop(nil)
	}
}

// cancelChild passes the client's session/cancel for a child on to the backend.
func (s *session) cancelChild(key string, params backend.Raw) {
	parent, ok := s.backend.(backend.Parent)
	if !ok {
		return
	}
	_ = s.adapter.tasks.Guard("cancel", func() error {
		s.WithBackend(func(backend.Session) { parent.CancelChild(key, params) })
		return nil
	})
}

// hasChild reports whether the backend has a child now.
func (s *session) hasChild(key string) bool {
	parent, ok := s.backend.(backend.Parent)
	return ok && parent.HasChild(key)
}

// inTurn reports whether a turn is running that was not told to end.
func (s *session) inTurn() bool {
	return slices.ContainsFunc(s.queue.Unanswered(), func(t *turns.Turn) bool {
		return t.RunsIn(s)
	})
}

// withSettingTold returns work, the rest of a request that a client has sent about the session. If
// the request changes a setting, the other viewers are told.
func (s *session) withSettingTold(
	from *connection, method string, params backend.Raw, work jsonrpc.Work,
) jsonrpc.Work {
	if work == nil ||
		method != protocol.SessionSetMode && method != protocol.SessionSetConfigOption {
		return work
	}
	return func() (json.RawMessage, error) {
		result, err := work()
		set := transcript.Setting(sessionstore.CurrentModeUpdate, strictjson.Find(params, "modeId"))
		if method == protocol.SessionSetConfigOption {
			set = transcript.Setting(sessionstore.ConfigOptionUpdate,
				strictjson.Find(result, "configOptions"))
		}
		if err == nil {
			s.transcript.ShowSetting(s.adapter.base, from, set)
		}
		return result, err
	}
}

// failed handles a failed write to the store. It ends the running turns, and also the session if
// another process took it over or deleted it.
func (s *session) failed(err error) {
	cause := record.AsFenced(err)
	if !errors.Is(err, context.Canceled) {
		running := slices.DeleteFunc(s.queue.Unanswered(),
			func(t *turns.Turn) bool { return !t.StartedIn(s) })
		s.adapter.tasks.Go(func() { turns.End(running, cause, nil) })
	}
	if record.Gone(err) {
		s.evict(cause)
	}
}

// close closes s if it is the active session of its queue. No turn runs in it. params are those of
// a session/close, or nil; the result is the backend's part of the response.
func (s *session) close(ctx context.Context, params backend.Raw) json.RawMessage {
	if !s.queue.Deactivate(s) {
		return nil
	}
	defer s.viewers.Close()
	return s.free(ctx, params, true)
}

// evict ends a session that another process took over or deleted, once its turn was answered, and
// a question outside turns was withdrawn.
func (s *session) evict(cause error) {
	a := s.adapter
	at := a.home.queues.Ticket(s.id, turns.Lifecycle, nil)
	a.tasks.Go(func() {
		defer at.Release()
		if at.Acquire(a.base) != nil || at.Queue.Active() != s {
			return
		}
		a.log.Info("the session ends: another process opened or deleted it", "session", s.id,
			"cause", cause)
		if at.Queue.EndTurns(a.base, cause) != nil {
			return
		}
		if s.viewers.Stop(nil) {
			s.viewers.ShowGone(a.base, cause, "The question is withdrawn here.")
		}
		s.close(a.base, nil)
	})
}

// free frees what the session holds, as far as it was opened, once. last says that its conversation
// ends: no other session has that. params are those of a session/close, or nil; the result is the
// backend's part of the response.
func (s *session) free(
	ctx context.Context, params backend.Raw, last bool,
) (result json.RawMessage) {
	s.freed.Do(func() {
		s.gate.Advance(gate.Closed)
		ctx, cancel := context.WithTimeout(ctx, tasks.CommitTimeout)
		defer cancel()
		var failed error
		try := func(step func(context.Context) error) { // it may panic
			err := s.adapter.tasks.Guard("close", func() error { return step(ctx) })
			failed = errors.Join(failed, err)
		}
		if s.record != nil {
			try(func(ctx context.Context) error {
				s.adapter.connection.observeUsage(s.id, s.spending.Store(ctx))
				return s.record.Close(ctx)
			})
		}
		if s.backend != nil {
			try(func(ctx context.Context) (err error) {
				result, err = closeBackend(ctx, s.backend, params)
				return err
			})
		}
		if last {
			defer s.freeSlot() // at the end: the adapter may end then
			try(s.servers.Close)
		}
		if s.unguarded != nil {
			try(func(context.Context) error { return s.unguarded.Close() })
		}
		if failed != nil && !errors.Is(failed, backend.ErrClosed) { // the client's end was faster
			s.adapter.log.Warn("cannot close the session", "session", s.id, "error", failed)
		}
	})
	return result
}

// closeBackend closes a backend's session, and passes params on if they are those of a
// session/close.
func closeBackend(
	ctx context.Context, s backend.Session, params backend.Raw,
) (json.RawMessage, error) {
	closer, ok := s.(backend.Closer)
	if !ok || params == nil {
		return nil, s.Close(ctx)
	}
	result, err := closer.CloseFor(ctx, params)
	if err != nil || !strictjson.IsObject(result) {
		return nil, err
	}
	return lifecycleResult(result)
}

// leave takes a client from the viewers of s. The turns of a remote client go on with the other
// viewers, or without any, until they end or the grace has passed.
func (s *session) leave(c *connection) {
	if s.viewers.Leave(c) {
		s.closeWhenIdle(c.graceNow())
	}
}

// closeWhenIdle closes s if it has no viewer that may answer, once its turns have ended or the
// given time has passed. It stops if such a viewer comes.
func (s *session) closeWhenIdle(during time.Duration) {
	back := s.viewers.Alone()
	if back == nil {
		return
	}
	s.adapter.tasks.Go(func() {
		grace, cancel := context.WithTimeout(context.Background(), during)
		defer cancel()
		for running := s.closeUnviewed(grace); running != nil; running = s.closeUnviewed(grace) {
			select {
			case <-running.Done():
			case <-grace.Done():
			case <-back:
				return
			case <-s.adapter.base.Done():
				return
			}
		}
	})
}

// closeUnviewed ends s once earlier requests are served, unless a client has opened it. While the
// grace lasts and a turn is running, it leaves s as it is, and returns that turn.
func (s *session) closeUnviewed(grace context.Context) (running *turns.Turn) {
	base := s.adapter.base
	at := s.adapter.home.queues.Ticket(s.id, turns.Lifecycle, nil)
	defer at.Release()
	if at.Acquire(base) != nil || at.Queue.Active() != s || s.viewers.Alone() == nil {
		return nil
	}
	if all := s.queue.Unanswered(); len(all) > 0 && grace.Err() == nil {
		return all[0]
	}
	if s.queue.EndTurns(base, backend.ErrCancelled) == nil {
		s.close(base, nil)
	}
	return nil
}

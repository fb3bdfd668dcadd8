package acp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

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
// [turns.Session]. opening.run makes it; ending.go has the ways in which it ends.
type session struct {
	*common
	host       *host // what its backend sees of it
	backend    backend.Session
	result     json.RawMessage // the backend's part of the response that opened it
	record     *record.Record
	spending   *metering.Spending
	transcript *transcript.Transcript[*connection]
	budgets    *budget.Budgets
	notice     string // that the user is shown once the response that opened it was sent, or ""

	// inBackend is held while backend runs a method. Its methods must not overlap, and may not wait
	// for a client.
	inBackend sync.Mutex
}

// newSession returns the session of h, which the backend has opened with a result, and the store
// with a lease. Nothing is shown in it yet.
func newSession(
	h *host, b backend.Session, result json.RawMessage, l sessionstore.Lease,
) *session {
	a, cwd := h.adapter, h.params.folders.Cwd()
	s := &session{common: h.common, host: h, backend: b, result: result}
	s.budgets = &budget.Budgets{
		Session: s.storeID, All: func() []Budget { return a.options.Budgets(cwd) },
		Store: a.options.Store, Origins: a.origins, Exceeds: &h.conversation.exceeds, Log: a.log}
	s.record = record.New(record.Options{Store: a.options.Store, Lease: l,
		Failed: s.failed, Recorder: a.options.tuning.Recorder,
		Subagents: record.NewSubagentLimit(a.options.tuning.SubagentBytes, a.log), Tasks: a.tasks})
	s.spending = metering.NewSpending(metering.Options{ID: s.storeID, Store: a.options.Store,
		Write: s.record.Write, Usage: a.info().Usage, Tasks: a.tasks, Log: a.log})
	var unruled string
	if info := a.info().Info; info.AsksLittle != "" {
		unruled = whyUnruled(info)
	}
	s.transcript = &transcript.Transcript[*connection]{
		Audience: s.viewers, Permits: s.access.Permits, Record: s.record,
		Spending:  s.spending,
		Charged:   func(charges []sessionstore.Charge) { a.connection.observeUsage(s.id, charges) },
		Worktrees: a.options.Worktrees.Dir != "", Lasts: a.home.isShared(), Unruled: unruled,
		Warned: &h.conversation.warned, Log: a.log.With("session", s.id)}
	return s
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

// cancelSubagent passes the client's session/cancel for a subagent on to the backend.
func (s *session) cancelSubagent(key string, params backend.Raw) {
	parent, ok := s.backend.(backend.Parent)
	if !ok {
		return
	}
	_ = s.adapter.tasks.Guard("cancel", func() error {
		s.WithBackend(func(backend.Session) { parent.CancelSubagent(key, params) })
		return nil
	})
}

// hasSubagent reports whether the backend has a subagent now.
func (s *session) hasSubagent(key string) bool {
	parent, ok := s.backend.(backend.Parent)
	return ok && parent.HasSubagent(key)
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

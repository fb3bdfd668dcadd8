package acp

import (
	"context"
	"iter"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// What a backend sees of its session: a session implements [backend.Host]. Until the lifecycle
// response was sent, it buffers what the backend shows. Ask is in questions.go, and Replay in
// replay_backend.go.

var _ backend.Host = (*session)(nil)

// For implements [backend.Host].
func (s *session) For(from backend.Sender) backend.Client { return asker{s, from} }

// Call implements [backend.Client].
func (s *session) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return asker{session: s}.Call(ctx, method, params)
}

// Notify implements [backend.Client].
func (s *session) Notify(ctx context.Context, method string, params backend.Raw) error {
	return asker{session: s}.Notify(ctx, method, params)
}

// Permits implements [backend.Host].
func (s *session) Permits() *permission.Permits { return s.access.Permits }

// Workspace implements [backend.Host].
func (s *session) Workspace() *workspace.Workspace { return s.access.Guarded }

// Tools implements [backend.Host].
func (s *session) Tools() backend.Tools { return s.servers }

// Catalog implements [backend.Host].
func (s *session) Catalog() *discovery.Catalog { return s.catalog.found.Load() }

// history returns the stored history of the session. Before the session is stored, it returns
// given, which may be nil.
func (s *session) history(given iter.Seq2[backend.Update, error]) iter.Seq2[backend.Update, error] {
	return func(yield func(backend.Update, error) bool) {
		switch {
		case s.gate.Phase() > gate.Opening:
			sessionstore.WithoutEnds(s.agent.options.Store.History(s.agent.base, s.storeID))(yield)
		case given != nil:
			given(yield)
		}
	}
}

// release sends the buffered updates. The lifecycle response is on the wire.
func (s *session) release(ctx context.Context) {
	for _, u := range s.gate.Advance(gate.Releasing) {
		if err := s.transcript.send(ctx, u, showFirst); err != nil {
			s.agent.log.Debug("update not sent", "session", s.id, "error", err)
		}
	}
	s.gate.Advance(gate.Live)
}

// Update implements [backend.Updates].
func (s *session) Update(ctx context.Context, u backend.Update) error {
	return s.sendOutside(ctx, u, showFirst)
}

// Commit implements [backend.Updates].
func (s *session) Commit(ctx context.Context, u backend.Update) error {
	return s.sendOutside(ctx, u, storeFirst)
}

// sendOutside buffers an update that belongs to no turn, or sends it once those that were buffered
// are sent.
func (s *session) sendOutside(ctx context.Context, u backend.Update, in order) error {
	if buffered, err := s.gate.Buffer(u); buffered || err != nil {
		return err
	}
	if err := s.gate.Wait(ctx); err != nil {
		return err
	}
	return s.transcript.send(ctx, u, in)
}

// SaveState implements [backend.Host].
func (s *session) SaveState(ctx context.Context, state []byte) error {
	if len(state) > backend.MaxState {
		return jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent's session state is over the limit of 64 KiB")
	}
	return s.gate.SaveState(state, func(state []byte) error { return s.storeState(ctx, state) })
}

// storeState stores the backend's state. If the store rejects it, the session ends in the
// background, because ending it may wait for the caller.
func (s *session) storeState(ctx context.Context, state []byte) error {
	key := s.agent.sessions.StateKey(state)
	err := s.record.Write(func(l sessionstore.Lease) error {
		return s.agent.options.Store.SaveState(ctx, l, state, key)
	})
	s.spending.SetSource(key)
	if err != nil {
		s.agent.tasks.Go(func() { s.failed(err) })
	}
	return err
}

// announceCommands announces the adapter's commands for a backend that has not announced any
// commands, now or earlier.
func (s *session) announceCommands() {
	if s.gate.Kinds()[sessionstore.AvailableCommandsUpdate] {
		return
	}
	states, err := s.agent.options.Store.States(s.agent.base, s.storeID)
	if err != nil {
		s.agent.log.Debug("cannot read the announced commands", "session", s.id, "error", err)
		return
	}
	for _, u := range states {
		if u.Kind == sessionstore.AvailableCommandsUpdate {
			s.transcript.announce(u) // it is in effect
			return
		}
	}
	_, _ = s.gate.Buffer(backend.NewUpdate(
		sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{
			AvailableCommands: []sdk.AvailableCommand{},
		}}))
}

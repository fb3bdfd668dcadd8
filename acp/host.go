package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// What a backend sees of its session: a session implements [backend.Host], together with the
// questions that it embeds. Until the lifecycle response was sent, it buffers what the backend
// shows.

var _ backend.Host = (*session)(nil)

// Workspace implements [backend.Host].
func (s *session) Workspace() *workspace.Workspace { return s.access.Guarded }

// Tools implements [backend.Host].
func (s *session) Tools() backend.Tools { return s.servers }

// Catalog implements [backend.Host].
func (s *session) Catalog() *discovery.Catalog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.catalog
}

// refresh scans the roots again and replaces the catalog. If that takes longer than RescanWait, or
// ctx ends, refresh returns and the catalog stays as it is until the scan is complete. At most one
// scan of a session runs at a time.
func (s *session) refresh(ctx context.Context) {
	s.Permits().ForgetAsked()
	wait := s.agent.options.tuning.RescanWait
	ctx, cancel := context.WithTimeoutCause(ctx, wait,
		fmt.Errorf("the scan takes longer than %v", wait))
	defer cancel()
	if err := s.rescan(ctx); err != nil && !errors.Is(err, backend.ErrCancelled) {
		s.agent.log.Warn("cannot scan the roots: "+
			"the prompt uses the instructions, skills and commands found before",
			"session", s.id, "error", err)
	}
}

func (s *session) rescan(ctx context.Context) error {
	return s.agent.tasks.OnDisk(ctx, func() error {
		return s.scanning.With(ctx, func(*struct{}) error {
			catalog, err := discovery.Scan(s.agent.base, s.Workspace())
			if err == nil {
				s.withState(func(now *state) { now.catalog = catalog })
			}
			return err
		})
	})
}

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
		if err := s.send(ctx, u, showFirst); err != nil {
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
	return s.send(ctx, u, in)
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
			s.announce(u) // it is in effect
			return
		}
	}
	_, _ = s.gate.Buffer(backend.NewUpdate(
		sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{
			AvailableCommands: []sdk.AvailableCommand{},
		}}))
}

// announce adds the adapter's commands to an announcement of the backend, and notes which of their
// names commands of the backend have. It returns other updates as they are.
func (s *session) announce(u backend.Update) backend.Update {
	if u.Kind == sessionstore.AvailableCommandsUpdate {
		var theirs []string
		u, theirs = commands.Announce(u, s.agent.options.Worktrees.Dir != "")
		s.withState(func(now *state) { now.agentHas = theirs })
	}
	return u
}

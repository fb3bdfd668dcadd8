package acp

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// replay shows the client the conversation of s, which it has loaded, before the response: the
// stored history, unless that was shown as the backend replayed it, then the current states.
func (o *opening) replay(ctx context.Context, s *session) error {
	if !s.replay.shown.Load() {
		if err := o.replayHistory(ctx, s.hasChild); err != nil {
			return err
		}
	}
	states, err := o.agent.options.Store.States(ctx, s.storeID)
	if err != nil {
		return protocolError(err)
	}
	learns := s.gate.Kinds()
	for _, u := range statesIn(s.opened.Result) {
		learns[u.Kind] = true
	}
	for _, u := range states {
		if learns[u.Kind] {
			continue
		}
		if err := s.showTo(ctx, o.from, s.announce(u)); err != nil {
			return err
		}
	}
	return nil
}

// replayHistory sends the stored history, and then marks the tool calls that have not ended in it
// as failed, except those of children that the backend has.
func (o *opening) replayHistory(ctx context.Context, hasChild func(key string) bool) error {
	open, children := calls.Open{}, openChildren{}
	history := o.agent.options.Store.History(ctx, o.source.ID)
	for u, err := range sessionstore.Joined(history) {
		if err != nil {
			return protocolError(err)
		}
		open.Note(u)
		children.note(u)
		if err := o.show(ctx, u); err != nil {
			return err
		}
	}
	for _, u := range append(open.Failures(hasChild), children.lost(hasChild)...) {
		if err := o.show(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// show sends the client that loads what is stored, and waits until it has room.
func (o *opening) show(ctx context.Context, u backend.Update) error {
	o.pace.wait(ctx)
	return o.from.sendUpdate(ctx, o.address, u, forAnother)
}

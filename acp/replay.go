package acp

import (
	"context"
	"encoding/json"

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
	var news []backend.Update
	for _, u := range states {
		if !learns[u.Kind] {
			news = append(news, s.transcript.announce(u))
		}
	}
	return o.showAll(ctx, news)
}

// replayHistory sends the stored history, and then ends the tool calls and children that have not
// ended in it, except those children that the backend has.
func (o *opening) replayHistory(ctx context.Context, hasChild func(key string) bool) error {
	var open calls.Open
	history := o.agent.options.Store.History(ctx, o.source.ID)
	for u, err := range sessionstore.Joined(history) {
		if err != nil {
			return protocolError(err)
		}
		open.Note(u)
		if err := o.show(ctx, u, forAnother); err != nil {
			return err
		}
	}
	return o.showAll(ctx, open.Ends(hasChild))
}

// showAll shows the client that loads what is stored.
func (o *opening) showAll(ctx context.Context, updates []backend.Update) error {
	for _, u := range updates {
		if err := o.show(ctx, u, forAnother); err != nil {
			return err
		}
	}
	return nil
}

// show sends the client that loads an update, and waits until it has room.
func (o *opening) show(ctx context.Context, u backend.Update, when occasion) error {
	o.pace(ctx)
	return o.from.deliver(o.address, u, o.address.params(u), when,
		func(method string, params json.RawMessage) error {
			return o.from.Notify(ctx, method, params)
		})
}

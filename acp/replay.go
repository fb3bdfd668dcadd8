package acp

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// replay shows the client the conversation of s, which it has loaded, before the response: the
// stored history, unless that was shown as the backend replayed it, then the current states.
func (l load) replay(ctx context.Context, s *session) error {
	store := s.agent.options.Store
	if !s.replay.shown.Load() {
		history := store.History(ctx, s.storeID)
		if err := l.showHistory(ctx, history, s.hasChild); err != nil {
			return err
		}
	}
	states, err := store.States(ctx, s.storeID)
	if err != nil {
		return protocolError(err)
	}
	learns := s.gate.Kinds()
	for _, u := range statesIn(s.result) {
		learns[u.Kind] = true
	}
	var news []backend.Update
	for _, u := range states {
		if !learns[u.Kind] {
			news = append(news, s.transcript.announce(u))
		}
	}
	return l.showAll(ctx, news)
}

// showHistory sends a stored history, and then ends the tool calls and children that have not ended
// in it, except those children that the backend has.
func (l load) showHistory(
	ctx context.Context, history iter.Seq2[sessionstore.Update, error],
	hasChild func(key string) bool,
) error {
	var open calls.Open
	for u, err := range sessionstore.Joined(history) {
		if err != nil {
			return protocolError(err)
		}
		open.Note(u)
		if err := l.show(ctx, u, forAnother); err != nil {
			return err
		}
	}
	return l.showAll(ctx, open.Ends(hasChild))
}

// showAll shows the client that loads what is stored.
func (l load) showAll(ctx context.Context, updates []backend.Update) error {
	for _, u := range updates {
		if err := l.show(ctx, u, forAnother); err != nil {
			return err
		}
	}
	return nil
}

// show sends the client that loads an update, and waits until it has room.
func (l load) show(ctx context.Context, u backend.Update, when occasion) error {
	l.pace(ctx)
	return l.from.deliver(l.to, u, l.to.params(u), when,
		func(method string, params json.RawMessage) error {
			return l.from.Notify(ctx, method, params)
		})
}

package acp

import (
	"cmp"
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// replay shows the client to a loaded session's conversation before the response: the stored
// history, unless that was shown as the backend replayed it, then the current states.
func (a *agent) replay(
	ctx context.Context, s *session, to *connection, pace pace,
) error {
	if !s.replay.shows {
		if err := a.replayHistory(ctx, s.address, s.stored, to, pace, s.hasChild); err != nil {
			return err
		}
	}
	states, err := a.options.Store.States(ctx, s.stored)
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
		if err := s.showTo(ctx, to, s.announce(u), asItComes); err != nil {
			return err
		}
	}
	return nil
}

// view shows a client that may not open the session what is stored of it. The session is not open
// here, and perhaps in another process, which keeps it.
func (l *load) view(ctx context.Context) error {
	if l.stored.Unstored {
		return errUnknownSession(l.params.id)
	}
	store, as := l.agent.options.Store, newAddress(l.params.id)
	if l.cause == backend.Load {
		err := l.agent.replayHistory(ctx, as, l.stored.ID, l.from, l.pace,
			func(string) bool { return true })
		if err != nil {
			return err
		}
	}
	states, err := store.States(ctx, l.stored.ID)
	for _, u := range states {
		err = cmp.Or(err, l.from.sendUpdate(ctx, as, u, forAnother))
	}
	return err
}

// replayHistory sends the stored history, and then marks the tool calls that have not ended in it
// as failed, except those of children that the backend has.
func (a *agent) replayHistory(
	ctx context.Context, as address, stored sessionstore.ID, to *connection, pace pace,
	hasChild func(key string) bool,
) error {
	open, children := calls.Open{}, openChildren{}
	show := func(u backend.Update) error {
		pace.wait(ctx)
		return to.sendUpdate(ctx, as, u, forAnother)
	}
	for u, err := range sessionstore.Joined(a.options.Store.History(ctx, stored)) {
		if err != nil {
			return protocolError(err)
		}
		open.Note(u)
		children.note(u)
		if err := show(u); err != nil {
			return err
		}
	}
	for _, u := range append(open.Failures(hasChild), children.lost(hasChild)...) {
		if err := show(u); err != nil {
			return err
		}
	}
	return nil
}

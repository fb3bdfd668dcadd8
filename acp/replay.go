package acp

import (
	"cmp"
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
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
	learns := s.bufferedKinds()
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
	open, children := openToolCalls{}, openChildren{}
	show := func(u backend.Update) error {
		pace.wait(ctx)
		return to.sendUpdate(ctx, as, u, forAnother)
	}
	for u, err := range sessionstore.Joined(a.options.Store.History(ctx, stored)) {
		if err != nil {
			return protocolError(err)
		}
		open.note(u)
		children.note(u)
		if err := show(u); err != nil {
			return err
		}
	}
	for _, u := range append(open.failures(hasChild), children.lost(hasChild)...) {
		if err := show(u); err != nil {
			return err
		}
	}
	return nil
}

// openToolCalls collects the tool calls of a history that have not ended, in order.
type openToolCalls struct {
	order []callKey
	open  map[callKey]bool
}

// note notes what u says about tool calls.
func (o *openToolCalls) note(u sessionstore.Update) {
	said := parseToolCall(u)
	switch {
	case ended(said.Status):
		delete(o.open, said.key())
	case kindOf(u) == sessionstore.ToolCall || said.Status != "":
		if o.open == nil {
			o.open = make(map[callKey]bool)
		}
		if !o.open[said.key()] {
			o.open[said.key()] = true
			o.order = append(o.order, said.key())
		}
	}
}

// ended reports whether a tool call with the given status has ended.
func ended(status string) bool { return status == "completed" || status == "failed" }

// failures returns updates that fail the open calls, except those of children that the backend has:
// they may still be running.
func (o *openToolCalls) failures(has func(child string) bool) (updates []backend.Update) {
	for _, id := range o.order {
		if o.open[id] && (id.child == "" || !has(id.child)) {
			delete(o.open, id)
			updates = append(updates, asker{Sender: backend.Sender{Child: id.child}}.change(id.call,
				sdk.WithUpdateStatus(sdk.ToolCallStatusFailed)))
		}
	}
	return updates
}

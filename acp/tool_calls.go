package acp

import (
	"cmp"
	"context"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Tool calls that the agent has not sent as updates, and marks in the titles of those about which a
// rule has decided.

// recordCallLocked records an update about a tool call without sending it: the client already knows
// its content.
func (t *transcript) recordCallLocked(ctx context.Context, u backend.Update) {
	said := calls.Parse(u)
	t.viewers.calls.Note(said)
	t.viewers.calls.Change(said.Key, func(c *calls.Call) { c.Asked = true })
	if err := t.add(ctx, u); err != nil {
		t.agent.log.Debug("a tool call is not in the history", "session", t.id,
			"error", err)
	}
}

// recordRejected records that a tool call failed because the user did not allow it, and shows that
// to the viewers but by, who knows it.
func (t *transcript) recordRejected(ctx context.Context, id calls.Key, by *connection) {
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	// If that fails, a load shows the call as failed, because it has not ended.
	_ = t.viewers.shown.With(ctx, func(*shown) error {
		failed := id.Change(sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))
		t.recordCallLocked(ctx, failed)
		if t.viewers.Others(by) > 0 {
			t.viewers.show(ctx, by, failed)
		}
		return nil
	})
}

// showMarked shows the viewers a tool call about which a rule decided, with a mark in its title.
func (t *transcript) showMarked(ctx context.Context, asked question, mark string) error {
	return t.viewers.shown.With(ctx, func(*shown) error {
		id := asked.key()
		known, isKnown := t.viewers.calls.Get(id)
		path := ""
		if len(asked.Call.Locations) > 0 {
			path = " " + asked.Call.Locations[0].Path
		}
		title := cmp.Or(known.Title, asked.Call.Title, asked.Call.Kind+path)
		title = strings.TrimSuffix(title, mark) + mark
		u := id.Change(sdk.WithUpdateTitle(title))
		if !isKnown {
			if id.ID == "" {
				return nil
			}
			u = asked.announce(title)
			t.viewers.calls.Note(calls.Parse(u))
		}
		t.viewers.calls.Change(id, func(c *calls.Call) { c.Mark, c.Asked = mark, true })
		return t.showLocked(ctx, u)
	})
}

// showLocked shows the viewers an update and records it.
func (t *transcript) showLocked(ctx context.Context, u backend.Update) error {
	t.viewers.show(ctx, nil, u)
	return t.add(ctx, u)
}

// noteCallLocked notes what an update of the agent, which is being shown, says about a tool call.
// It shows the mark of the call again if the update has replaced its title.
func (t *transcript) noteCallLocked(ctx context.Context, now *shown, u backend.Update) error {
	remembers := t.permits.Decides() || t.agent.home.grace > 0 // others may come
	if kind := kindOf(u); kind != sessionstore.ToolCall &&
		(kind != sessionstore.ToolCallUpdate || !remembers) {
		return nil
	}
	said := calls.Parse(u)
	call := t.viewers.calls.Note(said)
	if call.Mark != "" && said.Title != "" && !strings.HasSuffix(said.Title, call.Mark) {
		again := said.Key.Change(sdk.WithUpdateTitle(said.Title + call.Mark))
		if err := t.showLocked(ctx, again); err != nil {
			return err
		}
	}
	t.warnUnruledLocked(ctx, now, said, call)
	return nil
}

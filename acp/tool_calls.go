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
// rule has decided. All of them change while no other update is being shown.

// recordCall records an update about a tool call without sending it: the client already knows its
// content. No other update is being shown.
func (q *questions) recordCall(ctx context.Context, u backend.Update) {
	said := calls.Parse(u)
	q.viewers.calls.Note(said)
	q.viewers.calls.Change(said.Key, func(c *calls.Call) { c.Asked = true })
	if err := q.session.addToRecord(ctx, u); err != nil {
		q.agent.log.Debug("a tool call is not in the history", "session", q.id,
			"error", err)
	}
}

// recordRejected records that a tool call failed because the user did not allow it, and shows that
// to the viewers but by, who knows it.
func (q *questions) recordRejected(ctx context.Context, id calls.Key, by *connection) {
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	// If that fails, a load shows the call as failed, because it has not ended.
	_ = q.viewers.shown.With(ctx, func(*shown) error {
		failed := id.Change(sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))
		q.recordCall(ctx, failed)
		if q.viewers.Others(by) > 0 {
			q.viewers.show(ctx, by, failed)
		}
		return nil
	})
}

// showMarked shows the viewers a tool call about which a rule decided, with a mark in its title.
func (q *questions) showMarked(ctx context.Context, asked question, mark string) error {
	return q.viewers.shown.With(ctx, func(*shown) error {
		id := asked.key()
		known, isKnown := q.viewers.calls.Get(id)
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
			q.viewers.calls.Note(calls.Parse(u))
		}
		q.viewers.calls.Change(id, func(c *calls.Call) { c.Mark, c.Asked = mark, true })
		return q.show(ctx, u)
	})
}

// show shows the viewers an update and records it. No other update is being shown.
func (q *questions) show(ctx context.Context, u backend.Update) error {
	q.viewers.show(ctx, nil, u)
	return q.session.addToRecord(ctx, u)
}

// noteCall notes what an update of the agent, which is being shown, says about a tool call. It shows
// the mark of the call again if the update has replaced its title.
func (q *questions) noteCall(ctx context.Context, now *shown, u backend.Update) error {
	remembers := q.Permits().Decides() || q.agent.home.grace > 0 // others may come
	if kind := kindOf(u); kind != sessionstore.ToolCall &&
		(kind != sessionstore.ToolCallUpdate || !remembers) {
		return nil
	}
	said := calls.Parse(u)
	call := q.viewers.calls.Note(said)
	if call.Mark != "" && said.Title != "" && !strings.HasSuffix(said.Title, call.Mark) {
		again := said.Key.Change(sdk.WithUpdateTitle(said.Title + call.Mark))
		if err := q.show(ctx, again); err != nil {
			return err
		}
	}
	q.warnUnruled(ctx, now, said, call)
	return nil
}

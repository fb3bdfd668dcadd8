package acp

import (
	"cmp"
	"context"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Tool calls that the agent has not sent as updates, and marks in the titles of those about which a
// rule has decided. All of them change while no other update is being shown.

// recordToolCall records an update about a tool call without sending it: the client already knows
// its content. No other update is being shown.
func (s *session) recordToolCall(ctx context.Context, u backend.Update) {
	said := calls.Parse(u)
	s.viewers.calls.Note(said)
	s.viewers.calls.Change(said.Key, func(c *calls.Call) { c.Asked = true })
	if err := s.addToRecord(ctx, u); err != nil {
		s.agent.log.Debug("a tool call is not in the history", "session", s.id, "error", err)
	}
}

// recordRejected records that a tool call failed because the user did not allow it, and shows that
// to the viewers but by, who knows it.
func (s *session) recordRejected(ctx context.Context, id calls.Key, by *connection) {
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	// If that fails, a load shows the call as failed, because it has not ended.
	_ = s.viewers.shown.With(ctx, func(*shown) error {
		failed := id.Change(sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))
		s.recordToolCall(ctx, failed)
		if s.viewers.Others(by) > 0 {
			s.viewers.show(ctx, by, failed)
		}
		return nil
	})
}

// showMarked shows the client a tool call about which a rule decided, with a mark in its title.
func (s *session) showMarked(
	ctx context.Context, from asker, q question, mark string,
) error {
	return s.viewers.shown.With(ctx, func(*shown) error { return s.markNow(ctx, from, q, mark) })
}

// markNow is showMarked while no other update is being shown.
func (s *session) markNow(ctx context.Context, from asker, q question, mark string) error {
	id := calls.Key{Child: from.Child, ID: q.Call.ID}
	known, isKnown := s.viewers.calls.Get(id)
	path := ""
	if len(q.Call.Locations) > 0 {
		path = " " + q.Call.Locations[0].Path
	}
	title := cmp.Or(known.Title, q.Call.Title, q.Call.Kind+path)
	title = strings.TrimSuffix(title, mark) + mark
	if isKnown {
		s.setMark(id, mark)
		return s.showTitle(ctx, id, title)
	}
	if q.Call.ID == "" {
		return nil
	}
	call := strictjson.Set(strictjson.Find(q.params, "toolCall"), "title", quote(title))
	u := id.Announce(call)
	s.viewers.show(ctx, nil, u)
	s.recordToolCall(ctx, u)
	s.setMark(id, mark)
	return nil
}

// setMark notes the mark of a tool call, "" once it has ended.
func (s *session) setMark(id calls.Key, mark string) {
	s.viewers.calls.Change(id, func(c *calls.Call) { c.Mark = mark })
}

// markAgain shows the mark of a tool call again after an update of the agent has replaced its
// title. No other update is being shown.
func (s *session) markAgain(ctx context.Context, said calls.Update) error {
	call, _ := s.viewers.calls.Get(said.Key)
	mark := call.Mark
	if mark == "" {
		return nil
	}
	if said.Ended() {
		s.setMark(said.Key, "")
	}
	if said.Title == "" || strings.HasSuffix(said.Title, mark) {
		return nil
	}
	return s.showTitle(ctx, said.Key, said.Title+mark)
}

// showTitle changes the title of a tool call. No other update is being shown.
func (s *session) showTitle(ctx context.Context, id calls.Key, title string) error {
	u := id.Change(sdk.WithUpdateTitle(title))
	s.viewers.show(ctx, nil, u)
	return s.addToRecord(ctx, u)
}

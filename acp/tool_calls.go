package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// What a session remembers of the tool calls that its viewers have seen: what the agent has said of
// each, for its questions, and marks in their titles for those about which a rule has decided.

const (
	// maxToolCalls is how many tool calls a session remembers. The oldest is forgotten first.
	maxToolCalls = 1_000
	// maxCallTitle is the length up to which their titles are remembered, in bytes.
	maxCallTitle = 1 << 10
)

// callKey identifies a tool call in a session.
type callKey struct {
	child string // the key of the child session that makes it, "" for the session itself
	call  string
}

// toolCall is a tool call as the client has seen it. It is kept up to date only if there are rules
// about permissions.
type toolCall struct {
	said permission.Call
	mark string // in its title, while it has not ended
	// asked means that the agent has asked about it.
	asked bool
}

// maxInput is the maximum size of a tool's input that is remembered until the call has ended, in
// bytes.
const maxInput = 256 << 10

// tooLong stands for an input that is not remembered. No request agrees with it.
var tooLong = quote("too long to be shown again")

// toolCallUpdate is the part of an update that is about a tool call.
type toolCallUpdate struct {
	permission.Call

	child string
	raw   json.RawMessage
}

func (u toolCallUpdate) key() callKey { return callKey{u.child, u.ID} }

// parseToolCall returns what u says about a tool call, or the zero value if u is about something
// else.
func parseToolCall(u backend.Update) toolCallUpdate {
	child, u, _ := u.Child()
	if u.Kind != sessionstore.ToolCall && u.Kind != sessionstore.ToolCallUpdate {
		return toolCallUpdate{}
	}
	said := toolCallUpdate{child: child, raw: strictjson.Find(u.Raw, "update")}
	if json.Unmarshal(said.raw, &said.Call) != nil {
		return toolCallUpdate{}
	}
	return said
}

// noteToolCall remembers what u says about a tool call, and returns the tool call. The caller has
// begun an update.
func (s *session) noteToolCall(u backend.Update) toolCallUpdate {
	said := parseToolCall(u)
	call, known := s.toolCalls[said.key()]
	if !known && kindOf(u) == sessionstore.ToolCallUpdate {
		return said
	}
	if s.toolCalls == nil {
		s.toolCalls = make(map[callKey]toolCall)
	}
	call.said = remembered(call.said.With(said.Call), s.permits.Decides())
	s.toolCalls[said.key()] = call
	s.viewers.note(said)
	if known {
		return said
	}
	s.toolCallIDs = append(s.toolCallIDs, said.key())
	if len(s.toolCallIDs) > maxToolCalls {
		delete(s.toolCalls, s.toolCallIDs[0])
		s.viewers.calls.Delete(s.toolCallIDs[0])
		s.toolCallIDs = s.toolCallIDs[1:]
	}
	return said
}

// note remembers what the viewers are shown of a tool call, until it has ended.
func (v *viewers) note(said toolCallUpdate) {
	if ended(said.Status) {
		v.calls.Delete(said.key())
		return
	}
	known := withMembers(v.known(said.key()), said.raw)
	if len(known) > maxInput {
		_, known, _ = strictjson.Take(strictjson.Set(known, "rawInput", tooLong), "content")
	}
	v.calls.Store(said.key(), known)
}

// known returns what the viewers were shown of a tool call, or nil.
func (v *viewers) known(id callKey) json.RawMessage {
	known, _ := v.calls.Load(id)
	call, _ := known.(json.RawMessage)
	return call
}

// withMembers returns a tool call with the members that an update or a question has of it.
func withMembers(call, said json.RawMessage) json.RawMessage {
	object, _ := strictjson.ParseObject(said)
	for name, value := range object.All() {
		if name != "sessionUpdate" && string(value) != "null" {
			call = strictjson.Set(call, name, value)
		}
	}
	return call
}

// remembered returns the part of a call that is needed for later requests about it. An input that
// is too long is replaced by one that no request agrees with.
func remembered(c permission.Call, decides bool) permission.Call {
	c.Title = text.Truncate(c.Title, maxCallTitle)
	if !decides || ended(c.Status) {
		return permission.Call{ID: c.ID, Title: c.Title, Kind: c.Kind}
	}
	size := len(c.RawInput) + len(c.Meta)
	for _, content := range c.Content {
		size += len(content.New)
	}
	if size > maxInput {
		c.RawInput, c.Content, c.Meta = tooLong, nil, nil
	}
	return c
}

// toolCallOf returns the tool call of a permission request as an update. A tool_call needs a title,
// and its members must not be null.
func toolCallOf(call json.RawMessage) backend.Update {
	said := withMembers(json.RawMessage(`{"title":"Tool call"}`), call)
	said = strictjson.Set(said, "sessionUpdate", quote(string(sessionstore.ToolCall)))
	return backend.Update{Kind: sessionstore.ToolCall, Raw: strictjson.Set(nil, "update", said)}
}

// recordToolCall records an update about a tool call without sending it: the client already knows
// its content. The caller has begun an update.
func (s *session) recordToolCall(ctx context.Context, u backend.Update) {
	s.setAsked(s.noteToolCall(u).key())
	if err := s.record.add(ctx, u); err != nil {
		s.agent.log.Debug("a tool call is not in the history", "session", s.id, "error", err)
	}
}

// setAsked notes that the agent has asked about a tool call, if that is known. The caller has begun
// an update.
func (s *session) setAsked(id callKey) {
	if call, known := s.toolCalls[id]; known {
		call.asked = true
		s.toolCalls[id] = call
	}
}

// recordRejected records that a tool call failed because the user did not allow it, and shows that
// to the viewers but by, who knows it.
func (s *session) recordRejected(ctx context.Context, from asker, id string, by *connection) {
	ctx, cancel := commitContext(ctx)
	defer cancel()
	if s.beginUpdate(ctx) != nil {
		return // a load shows the call as failed, because it has not ended
	}
	defer s.endUpdate()
	failed := from.change(id, sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))
	s.recordToolCall(ctx, failed)
	if s.viewers.Others(by) == 0 {
		return
	}
	if err := s.viewers.update(ctx, by, failed); err != nil {
		s.agent.log.Debug("update not sent", "session", s.id, "error", err)
	}
}

// showMarked shows the client a tool call about which a rule decided, with a mark in its title.
func (s *session) showMarked(
	ctx context.Context, from asker, q question, mark string,
) error {
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	defer s.endUpdate()
	id := callKey{from.Child, q.Call.ID}
	known, isKnown := s.toolCalls[id]
	path := ""
	if len(q.Call.Locations) > 0 {
		path = " " + q.Call.Locations[0].Path
	}
	title := cmp.Or(known.said.Title, q.Call.Title, q.Call.Kind+path)
	title = strings.TrimSuffix(title, mark) + mark
	if isKnown {
		s.setMark(id, mark)
		return s.showTitle(ctx, id, title)
	}
	if q.Call.ID == "" {
		return nil
	}
	call := strictjson.Set(strictjson.Find(q.params, "toolCall"), "title", quote(title))
	u := from.update(toolCallOf(call))
	if err := s.show(ctx, u); err != nil {
		return err
	}
	s.recordToolCall(ctx, u)
	s.setMark(id, mark)
	return nil
}

// setMark notes the mark of a tool call that the client knows, "" once it has ended. The caller has
// begun an update.
func (s *session) setMark(id callKey, mark string) {
	call := s.toolCalls[id]
	call.mark = mark
	s.toolCalls[id] = call
}

// markAgain shows the mark of a tool call again after an update of the agent has replaced its
// title. The caller has begun an update.
func (s *session) markAgain(ctx context.Context, said toolCallUpdate) error {
	mark := s.toolCalls[said.key()].mark
	if mark == "" {
		return nil
	}
	if ended(said.Status) {
		s.setMark(said.key(), "")
	}
	if said.Title == "" || strings.HasSuffix(said.Title, mark) {
		return nil
	}
	return s.showTitle(ctx, said.key(), said.Title+mark)
}

// showTitle changes the title of a tool call. The caller has begun an update.
func (s *session) showTitle(ctx context.Context, id callKey, title string) error {
	u := asker{Sender: backend.Sender{Child: id.child}}.change(id.call, sdk.WithUpdateTitle(title))
	if err := s.show(ctx, u); err != nil {
		return err
	}
	return s.record.add(ctx, u)
}

package acp

import (
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// requestPermission sends the client a permission request, unless a rule answers it. Some agents
// mention a tool call only there, and say nothing more about one that was rejected. Such a call is
// recorded from the request, with its outcome.
func (s *session) requestPermission(
	ctx context.Context, from asker, params backend.Raw, ask func(backend.Raw) func() answer,
) backend.Work {
	d := s.permit(ctx, from, params)
	if d.answer != nil {
		return d.answer
	}
	if err := s.beginUpdate(ctx); err != nil {
		return jsonrpc.Fail(err)
	}
	defer s.endUpdate()
	wait := s.answered(d, s.observed(d.params, ask(d.params)))
	call, err := strictjson.ParseObject(strictjson.Find(params, "toolCall"))
	id := ""
	if err == nil {
		id, _ = call.Field("toolCallId").Text()
	}
	_, known := s.toolCalls[callKey{from.child, id}]
	if known || id == "" {
		return func() (backend.Raw, error) {
			got := wait()
			return got.Result, got.Err
		}
	}
	s.recordToolCall(ctx, from.update(toolCallOf(call)))
	return func() (backend.Raw, error) {
		got := wait()
		if got.Err != nil || !allows(params, got.Result) {
			s.recordRejected(ctx, from, id, got.By)
		}
		return got.Result, got.Err
	}
}

// answered returns wait, with what the client has chosen as the backend understands it.
func (s *session) answered(d ruling, wait func() answer) func() answer {
	return func() answer {
		got := wait()
		if got.Err == nil {
			got.Result = s.chosen(d, got.Result)
		}
		if d.asked != nil && got.Err == nil && allows(d.params, got.Result) {
			s.host.permits.noteAsked(*d.asked)
		}
		return got
	}
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

// recordRejected records that a tool call failed because the user did not allow it, and shows that to
// the viewers but by, who knows it.
func (s *session) recordRejected(ctx context.Context, from asker, id string, by *agent) {
	ctx, cancel := commitContext(ctx)
	defer cancel()
	if s.beginUpdate(ctx) != nil {
		return // a load shows the call as failed, because it has not ended
	}
	defer s.endUpdate()
	failed := from.change(id, sdk.WithUpdateStatus(sdk.ToolCallStatusFailed))
	s.recordToolCall(ctx, failed)
	if s.host.viewers.Others(by) == 0 {
		return
	}
	if err := s.host.viewers.update(ctx, by, failed); err != nil {
		s.agent.log.Debug("update not sent", "session", s.id, "error", err)
	}
}

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

// toolCallUpdate is the part of an update that is about a tool call.
type toolCallUpdate struct {
	permission.Call

	child string
}

func (u toolCallUpdate) key() callKey { return callKey{u.child, u.ID} }

// parseToolCall returns what u says about a tool call, or the zero value if u is about something
// else.
func parseToolCall(u backend.Update) toolCallUpdate {
	child, u, _ := u.Child()
	if u.Kind != sessionstore.ToolCall && u.Kind != sessionstore.ToolCallUpdate {
		return toolCallUpdate{}
	}
	said := toolCallUpdate{child: child}
	if json.Unmarshal(strictjson.Find(u.Raw, "update"), &said.Call) != nil {
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
	call.said = remembered(call.said.With(said.Call), s.host.permits.Configured != nil)
	s.toolCalls[said.key()] = call
	if known {
		return said
	}
	s.toolCallIDs = append(s.toolCallIDs, said.key())
	if len(s.toolCallIDs) > maxToolCalls {
		delete(s.toolCalls, s.toolCallIDs[0])
		s.toolCallIDs = s.toolCallIDs[1:]
	}
	return said
}

// remembered returns the part of a call that is needed for later requests about it. An input that is
// too long is replaced by one that no request agrees with.
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
		c.RawInput, c.Content, c.Meta = json.RawMessage(`"too long"`), nil, nil
	}
	return c
}

// toolCallOf returns the tool call of a permission request as an update. A tool_call needs a title,
// and its members must not be null.
func toolCallOf(call strictjson.Object) backend.Update {
	raw := []byte(`{"update":{"sessionUpdate":"tool_call"`)
	add := func(name string, value json.RawMessage) {
		raw = append(strictjson.AppendText(append(raw, ','), name), ':')
		raw = append(raw, value...)
	}
	titled := false
	for name, value := range call.All() {
		if name != "sessionUpdate" && string(value) != "null" {
			add(name, value)
			titled = titled || name == "title"
		}
	}
	if !titled {
		add("title", quote("Tool call"))
	}
	return backend.Update{Kind: sessionstore.ToolCall, Raw: append(raw, "}}"...)}
}

// allows reports whether the client's answer to a permission request allows the tool call.
func allows(params, result backend.Raw) bool {
	kind, ok := choice(params, result)
	return ok && !strings.HasPrefix(kind, "reject")
}

// choice returns the kind of the option that the client's answer to a permission request chooses.
func choice(params, result backend.Raw) (kind string, ok bool) {
	var request struct {
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	var answer struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			ID      string `json:"optionId"`
		} `json:"outcome"`
	}
	if json.Unmarshal(params, &request) != nil || json.Unmarshal(result, &answer) != nil ||
		answer.Outcome.Outcome != "selected" {
		return "", false
	}
	for _, o := range request.Options {
		if o.ID == answer.Outcome.ID {
			return o.Kind, true
		}
	}
	return "", false
}

// ask announces a tool call of the adapter itself, asks q about it, as [backend.Question.Ask] does,
// and reports its end to the client.
func (h *host) ask(
	ctx context.Context, to backend.Updates, call sdk.ToolCallUpdate, q backend.Question,
) (always bool, err error) {
	call.Status = sdk.Ptr(sdk.ToolCallStatusPending)
	q.ToolCall = backend.Encode(call)
	announced := strictjson.Set(q.ToolCall, "sessionUpdate", quote(string(sessionstore.ToolCall)))
	if err := to.Update(ctx, backend.NewUpdate(announced)); err != nil {
		return false, err
	}
	always, err = q.Ask(ctx, h)
	status := sdk.ToolCallStatusCompleted
	if err != nil {
		status = sdk.ToolCallStatusFailed
	}
	ended := backend.NewUpdate(sdk.UpdateToolCall(call.ToolCallId, sdk.WithUpdateStatus(status)))
	if sent := to.Update(ctx, ended); err == nil {
		err = sent
	}
	return always, err
}

package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/turns"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// allowedMark is appended to the title of a tool call that was allowed without asking the user.
const allowedMark = " (allowed by acp-agent)"

// permissionRequest is the part of a permission request that decides whether the user must be
// asked.
type permissionRequest struct {
	ToolCall struct {
		ID        string `json:"toolCallId"`
		Title     string `json:"title"`
		Kind      string `json:"kind"`
		Locations []struct {
			Path string `json:"path"`
		} `json:"locations"`
		Content []struct {
			Type string `json:"type"`
		} `json:"content"`
		RawInput any `json:"rawInput"`
	} `json:"toolCall"`
	Options []struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
	} `json:"options"`
}

var permissionShape = shape(shapes{
	"toolCall": shape(shapes{"locations": list(keys("path")), "content": list(keys("type"))},
		"toolCallId", "title", "kind", "rawInput"),
	"options": list(keys("optionId", "kind")),
})

// maxLocations is the maximum number of paths in a permission request that is allowed without
// asking.
const maxLocations = 100

// allowRead answers a permission request without asking the user if Options.AllowReads says so, a
// turn is running, and everything that the request says is to read or search inside the session's
// roots. The client is shown the tool call with a mark in its title. Nothing checks what the agent
// then does, as when the user allows a call.
func (s *session) allowRead(
	ctx context.Context, from asker, params backend.Raw,
) (work backend.Work, ok bool) {
	if !s.agent.options.AllowReads || !s.inTurn() ||
		len(strictjson.Check(params, permissionShape)) > 0 {
		return nil, false
	}
	var r permissionRequest
	if json.Unmarshal(params, &r) != nil {
		return nil, false
	}
	if err := s.setKind(ctx, from, &r); err != nil {
		return nil, false
	}
	option := r.allowOnce()
	inside := func(path string) bool { return checkPath(path, from.handOver) == nil }
	if option == "" || !r.reads(inside) {
		return nil, false
	}
	if err := s.showAllowed(ctx, from, params, r); err != nil {
		return jsonrpc.Fail(err), true
	}
	call := r.ToolCall
	s.agent.log.Info("allowed the agent to read without asking", "session", s.id,
		"toolCall", call.ID, "kind", call.Kind, "locations", call.Locations)
	outcome := sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(option))
	return func() (backend.Raw, error) {
		return backend.Encode(sdk.RequestPermissionResponse{Outcome: outcome}), nil
	}, true
}

// setKind fills in a missing kind from the agent's earlier announcement of the tool call. It does
// so for kind other too: opencode sends that when it asks to enter a directory for a tool call.
func (s *session) setKind(ctx context.Context, from asker, r *permissionRequest) error {
	if r.ToolCall.Kind != "" && r.ToolCall.Kind != string(sdk.ToolKindOther) {
		return nil
	}
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	defer s.endUpdate()
	r.ToolCall.Kind = s.toolCalls[callKey{from.child, r.ToolCall.ID}].kind
	return nil
}

// inTurn reports whether a turn is running that was not told to end.
func (s *session) inTurn() bool {
	return slices.ContainsFunc(s.queue.Unanswered(), func(t *turns.Turn) bool {
		return t.RunsIn(s)
	})
}

// handOver returns an error unless another program that opens path now reaches a file or directory
// of the session.
func (s *session) handOver(path string) error { return handOver(s.workspace, path) }

func handOver(w *workspace.Workspace, path string) error {
	if w.HandOverDir(path) == nil {
		return nil
	}
	return w.HandOverFile(path)
}

// allowOnce returns the option that allows the tool call once, "" if there is not exactly one.
func (r permissionRequest) allowOnce() string {
	option := ""
	for _, o := range r.Options {
		if o.Kind != string(sdk.PermissionOptionKindAllowOnce) {
			continue
		}
		if option != "" {
			return ""
		}
		option = o.ID
	}
	return option
}

// reads reports whether the tool call reads or searches files, and all paths that it names, at
// least one, are inside. It does not trust the kind alone: agents derive it from what their models
// ask for, and some use the kind read for a shell command that only reads a file.
func (r permissionRequest) reads(inside func(path string) bool) bool {
	call := r.ToolCall
	if call.ID == "" ||
		call.Kind != string(sdk.ToolKindRead) && call.Kind != string(sdk.ToolKindSearch) ||
		len(call.Locations) > maxLocations {
		return false
	}
	for _, l := range call.Locations {
		if !inside(l.Path) {
			return false
		}
	}
	for _, c := range call.Content {
		if c.Type != "content" { // a diff or a terminal
			return false
		}
	}
	switch call.RawInput.(type) {
	case nil, map[string]any:
	default:
		return false
	}
	paths := 0
	return harmless(call.RawInput, func(path string) bool {
		paths++
		return paths <= maxLocations && inside(path)
	}) && len(call.Locations)+paths > 0
}

// harmless reports whether a tool's input contains no command, and only paths that are inside.
func harmless(input any, inside func(path string) bool) bool {
	switch v := input.(type) {
	case map[string]any:
		for name, value := range v {
			if namesCommand(name) || !harmless(value, inside) {
				return false
			}
		}
	case []any:
		for _, value := range v {
			if !harmless(value, inside) {
				return false
			}
		}
	case string:
		switch {
		case strings.HasPrefix(v, "~"), strings.Contains(v, "://"),
			slices.Contains(strings.FieldsFunc(v, isSeparator), ".."):
			return false
		case filepath.IsAbs(v), strings.HasPrefix(v, "/"):
			return inside(v)
		}
	}
	return true
}

func isSeparator(r rune) bool { return r == '/' || r == '\\' }

// namesCommand reports whether a member called name of a tool's input may hold a command.
func namesCommand(name string) bool {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
	switch name {
	case "command", "commands", "commandline", "cmd", "cmdline", "script", "argv", "args",
		"shell", "exec", "code", "program":
		return true
	}
	return false
}

// showAllowed shows the client a tool call that was allowed without asking, with a mark.
func (s *session) showAllowed(
	ctx context.Context, from asker, params backend.Raw, r permissionRequest,
) error {
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	defer s.endUpdate()
	id := callKey{from.child, r.ToolCall.ID}
	known, isKnown := s.toolCalls[id]
	path := ""
	if len(r.ToolCall.Locations) > 0 {
		path = " " + r.ToolCall.Locations[0].Path
	}
	title := cmp.Or(known.title, r.ToolCall.Title, r.ToolCall.Kind+path)
	title = strings.TrimSuffix(title, allowedMark) + allowedMark
	if isKnown {
		s.setAllowed(id, true)
		return s.showTitle(ctx, id, title)
	}
	call, err := strictjson.Put(strictjson.Find(params, "toolCall"), "title", quote(title))
	if err != nil {
		return err
	}
	object, err := strictjson.ParseObject(call)
	if err != nil {
		return err
	}
	u := from.update(toolCallOf(object))
	if err := s.show(ctx, u); err != nil {
		return err
	}
	s.recordToolCall(ctx, u)
	s.setAllowed(id, true)
	return nil
}

// setAllowed notes whether a tool call that the client knows was allowed without asking and has not
// ended. The caller has begun an update.
func (s *session) setAllowed(id callKey, allowed bool) {
	call := s.toolCalls[id]
	call.allowed = allowed
	s.toolCalls[id] = call
}

// markAgain shows the mark of a tool call again after an update of the agent has replaced its
// title. The caller has begun an update.
func (s *session) markAgain(ctx context.Context, said toolCallUpdate) error {
	if !s.toolCalls[said.key()].allowed {
		return nil
	}
	if ended(said.Status) {
		s.setAllowed(said.key(), false)
	}
	if said.Title == "" || strings.HasSuffix(said.Title, allowedMark) {
		return nil
	}
	return s.showTitle(ctx, said.key(), said.Title+allowedMark)
}

// showTitle changes the title of a tool call. The caller has begun an update.
func (s *session) showTitle(ctx context.Context, id callKey, title string) error {
	u := asker{child: id.child}.change(id.call, sdk.WithUpdateTitle(title))
	if err := s.show(ctx, u); err != nil {
		return err
	}
	return s.record.add(ctx, u)
}

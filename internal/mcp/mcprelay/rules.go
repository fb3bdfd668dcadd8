package mcprelay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// refuses reports whether a rule is about a line of the client, which may be a batch: then all of
// it is refused. It answers in place of the server.
func (r *relay) refuses(line []byte) bool {
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil || len(batch) == 0 {
		batch = []json.RawMessage{line}
	}
	err := r.check(slices.DeleteFunc(slices.Clone(batch), isHarmless))
	if err == nil {
		return false
	}
	text := "acp-agent refused the call: " + err.Error()
	for _, raw := range batch {
		m := parse(raw)
		answer := failure(m.id, text)
		if m.method == "tools/call" {
			answer = response(m.id, "result", strictjson.Encode(&mcp.CallToolResult{IsError: true,
				Content: []mcp.Content{&mcp.TextContent{Text: text}}}))
		}
		if m.method != "" && m.id != nil && !r.client.queue(answer) {
			r.Logger.Warn("cannot answer a call that a rule refused: the MCP client does not read")
		}
	}
	return true
}

// isHarmless reports whether a message surely uses nothing of the server: an answer, a
// notification, or a request for a list.
func isHarmless(raw json.RawMessage) bool {
	switch m := parse(raw); m.method {
	case "":
		return len(bytes.TrimSpace(raw)) == 0 ||
			m.id != nil && strictjson.Check(raw, messageShape) == nil
	case "initialize", "ping", "logging/setLevel", "server/discover", "subscriptions/listen":
		return true
	default:
		return strings.HasPrefix(m.method, "notifications/") || strings.HasSuffix(m.method, "/list")
	}
}

// messageShape has the names that servers may read in any case.
var messageShape = &strictjson.Shape{Fields: map[string]*strictjson.Shape{"method": nil, "id": nil,
	"params": {Fields: map[string]*strictjson.Shape{"name": nil, "arguments": nil, "uri": nil}}}}

// check returns an error if a deny rule of the session is about one of some requests. Ask rules are
// left to the agent's own questions: the user cannot be asked here, and may just have been.
func (r *relay) check(requests []json.RawMessage) error {
	if len(requests) == 0 {
		return nil
	}
	session, err := SessionRules(context.Background(), r.Address, r.Secret)
	if errors.Is(err, ErrEnded) {
		return nil
	}
	rules, invalid := permission.Permissions{Deny: session.Deny}.Rules()
	err = errors.Join(err, invalid)
	if err != nil || rules.Deny == nil && session.ReadOnly == nil {
		return err
	}
	if len(session.Folders) == 0 {
		return errors.New("the folders of the session are gone, so that rules cannot be checked")
	}
	roots, err := workspace.NewRoots(session.Folders[0], session.Folders[1:])
	if err != nil {
		return err
	}
	roots = roots.ReadOnlyAt(session.ReadOnly)
	w, err := workspace.Open(context.Background(), roots, workspace.Options{MaxRoots: roots.Len()})
	if err != nil {
		return err
	}
	defer w.Close()
	rules.Deny = append(rules.Deny, permission.ReadOnlyRules(w)...)
	for _, raw := range requests {
		err := rules.Check(r.action(w, raw))
		if _, asks := permission.Asks(err); err != nil && !asks {
			return err
		}
		if wrong := strictjson.Check(raw, messageShape); wrong != nil || parse(raw).method == "" {
			return errors.New("the message is not understood, so that rules cannot be checked")
		}
	}
	return nil
}

// action returns what a request does. What is not a tool belongs to the server's tools as a whole.
func (r *relay) action(w *workspace.Workspace, raw json.RawMessage) permission.Action {
	m := parse(raw)
	if m.method != "tools/call" {
		return permission.At(w).ToolCall(permission.ServerTool{Server: r.Server, ReadOnly: true}, m.params)
	}
	tool := strictjson.FindText(strictjson.Last(m.params, "name"))
	r.mu.Lock()
	claims := r.readOnly[tool]
	r.mu.Unlock()
	call := permission.ServerTool{Server: r.Server, Name: tool, ReadOnly: claims}
	return permission.At(w).ToolCall(call, strictjson.Last(m.params, "arguments"))
}

// noteClaims notes which tools of a list claim to change nothing.
func (r *relay) noteClaims(list json.RawMessage) {
	var all []mcp.Tool
	if json.Unmarshal(list, &all) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, tool := range all {
		r.readOnly[tool.Name] = tool.Annotations != nil && tool.Annotations.ReadOnlyHint
	}
}

// failure returns a response with an error, without a newline.
func failure(id json.RawMessage, text string) []byte {
	return response(id, "error",
		strictjson.Encode(map[string]any{"code": jsonrpc.CodeInvalidParams, "message": text}))
}

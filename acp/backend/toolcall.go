package backend

import (
	"context"
	"crypto/rand"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// ToolCall is a tool_call or a tool_call_update, which leaves out what does not change, or the
// toolCall of a permission request. Unlike in the SDK's types, its content can have a [Diff].
type ToolCall struct {
	SessionUpdate sessionstore.Kind `json:"sessionUpdate,omitempty"` // "" in a permission request
	sdk.ToolCallUpdate
	Content []any `json:"content,omitempty"`
}

// Diff is the content of a tool call that changes a file. The SDK's type leaves out the old text of
// a new file, where clients expect null.
type Diff struct {
	sdk.ToolCallContentDiff
	OldText *string `json:"oldText"`
}

// NewDiff returns the difference between two texts of a file. The old one is nil for a new file.
func NewDiff(path string, old *string, text string) Diff {
	return Diff{sdk.ToolCallContentDiff{Type: "diff", Path: path, NewText: text}, old}
}

// NewToolCall returns a tool call that has not begun. It shows a text in Markdown, unless that is
// "". Its id begins with a prefix and differs from the ids of all other calls, including those that
// earlier processes have stored.
func NewToolCall(prefix string, kind sdk.ToolKind, title, about string) ToolCall {
	return ToolCall{Content: TextContent(about), ToolCallUpdate: sdk.ToolCallUpdate{
		ToolCallId: sdk.ToolCallId(prefix + "-" + rand.Text()[:16]), Title: &title, Kind: &kind,
		Status: sdk.Ptr(sdk.ToolCallStatusPending)}}
}

// TextContent returns a text as the content of a tool call, nil for "".
func TextContent(s string) []any {
	if s == "" {
		return nil
	}
	return []any{sdk.ToolContent(sdk.TextBlock(s))}
}

// ShownCall is a tool call that the client sees.
type ShownCall struct {
	ID      sdk.ToolCallId
	Updates Updates
}

// ShowCall shows a tool call from its beginning.
func ShowCall(ctx context.Context, u Updates, c ToolCall) (ShownCall, error) {
	c.SessionUpdate = sessionstore.ToolCall
	return ShownCall{c.ToolCallId, u}, u.Update(ctx, NewUpdate(c))
}

// Show shows what has changed.
func (s ShownCall) Show(ctx context.Context, c ToolCall) error {
	c.SessionUpdate, c.ToolCallId = sessionstore.ToolCallUpdate, s.ID
	return s.Updates.Update(ctx, NewUpdate(c))
}

// ShowStatus shows a new status, and content unless it is nil.
func (s ShownCall) ShowStatus(ctx context.Context, status sdk.ToolCallStatus, content []any) error {
	return s.Show(ctx, ToolCall{
		Content: content, ToolCallUpdate: sdk.ToolCallUpdate{Status: &status}})
}

// AskShown asks a question and shows its tool call, from its beginning to its end.
func AskShown(ctx context.Context, user Asker, u Updates, q Question) (answer Answer, err error) {
	call, err := ShowCall(ctx, u, q.Call)
	if err != nil {
		return answer, err
	}
	answer, err = user.Ask(ctx, q)
	status := sdk.ToolCallStatusCompleted
	if err != nil {
		status = sdk.ToolCallStatusFailed
	}
	if sent := call.ShowStatus(ctx, status, nil); err == nil {
		err = sent
	}
	return answer, err
}

// Locations returns a location for a tool call, unless JSON cannot represent the path. Line 0
// stands for the whole file.
func Locations(path string, line int) []sdk.ToolCallLocation {
	switch {
	case !utf8.ValidString(path):
		return nil
	case line == 0:
		return []sdk.ToolCallLocation{{Path: path}}
	default:
		return []sdk.ToolCallLocation{{Path: path, Line: &line}}
	}
}

// TerminalParams returns the members of the params of terminal/create that say what runs. env has
// entries NAME=VALUE.
func TerminalParams(program string, args, env []string) map[string]any {
	params := map[string]any{"command": program, "args": append([]string{}, args...)}
	if len(env) > 0 {
		variables := make([]sdk.EnvVariable, len(env))
		for i, entry := range env {
			variables[i].Name, variables[i].Value, _ = strings.Cut(entry, "=")
		}
		params["env"] = variables
	}
	return params
}

package backend

import (
	"crypto/rand"
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

// NewToolCallID returns an id for a tool call that begins with a prefix. It differs from the ids of
// all other calls, including those that earlier processes have stored.
func NewToolCallID(prefix string) sdk.ToolCallId {
	return sdk.ToolCallId(prefix + "-" + rand.Text()[:16])
}

// NewToolCall returns a tool call that has not begun, with a new id that begins with a prefix. It
// shows a text in Markdown.
func NewToolCall(prefix string, kind sdk.ToolKind, title, about string) ToolCall {
	return ToolCall{Content: TextContent(about), ToolCallUpdate: sdk.ToolCallUpdate{
		ToolCallId: NewToolCallID(prefix), Title: &title, Kind: &kind,
		Status: sdk.Ptr(sdk.ToolCallStatusPending)}}
}

// TextContent returns a text as the content of a tool call.
func TextContent(s string) []any { return []any{sdk.ToolContent(sdk.TextBlock(s))} }

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

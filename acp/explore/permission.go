package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/workspace"
)

// errCancelled: the client cancelled the turn by way of its answer to a question.
var errCancelled = errors.New("the client cancelled the turn")

// permission is an answer to session/request_permission.
type permission int

const (
	permissionRejected permission = iota
	permissionAllowed
	permissionCancelled
)

// permissionRequest is the params of session/request_permission, without the session.
type permissionRequest struct {
	ToolCall toolCall           `json:"toolCall"`
	Options  []permissionOption `json:"options"`
}

type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// allowOnce is the only answer that allows anything: each change is shown, and asked for.
const allowOnce = "allow-once"

// ask shows the change and asks whether it may be made (A30).
func (t *turn) ask(ctx context.Context, c change, call tool) (permission, error) {
	shown := c.toolCall()
	shown.ID, shown.Content = call.id, c.diff()
	params := encodeJSON(permissionRequest{
		ToolCall: shown,
		Options: []permissionOption{
			{allowOnce, "Allow", "allow_once"},
			{"reject-once", "Reject", "reject_once"},
		},
	})
	result, err := t.host.Call(ctx, "session/request_permission", params)()
	if err != nil {
		return permissionRejected, err
	}
	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return permissionRejected, fmt.Errorf("its answer cannot be read: %w", err)
	}
	switch {
	case answer.Outcome.Outcome == "cancelled":
		return permissionCancelled, nil
	case answer.Outcome.Outcome == "selected" && answer.Outcome.OptionID == allowOnce:
		return permissionAllowed, nil
	default:
		return permissionRejected, nil
	}
}

// toolCall is the change before it is made. Once it is known where the path leads, it says so (C11), in the
// client's spelling.
func (c change) toolCall() toolCall {
	call := toolCall{Tool: toolEdit, Status: toolPending, RawInput: map[string]any{"path": c.Asked}}
	verb := map[string]string{"write": "Write ", "edit": "Edit "}[c.command]
	if c.Ref == (workspace.Ref{}) {
		call.Title = verb + clip(printable(c.Asked), 200)
		return call
	}
	path, root := c.Ref.Path(), c.Ref.Root().Dir.String()
	call.Title = verb + printable(path) + " in root " + printable(root)
	call.RawInput = map[string]any{"path": c.Asked, "resolvedPath": path, "root": root}
	call.Locations = c.places()
	return call
}

// places is where the file begins to be another, or nothing if it is not known where it is.
func (c change) places() []location {
	if c.Ref == (workspace.Ref{}) {
		return nil
	}
	return []location{{Path: c.Ref.Path(), Line: c.FirstLine()}}
}

// diff is the change for the client to show.
func (c change) diff() []toolContent {
	return []toolContent{{Type: "diff", diff: &diff{Path: c.Ref.Path(), OldText: c.Old, NewText: c.New}}}
}

package explore

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/workspace"
)

// ask shows the change and asks whether it may be made (A30). Nothing is allowed for longer: each change is shown, and
// asked for.
func (t *turn) ask(ctx context.Context, c change, call tool) (backend.Answer, error) {
	shown := c.toolCall()
	shown.ID, shown.Content = call.id, c.diff()
	q := backend.Question{ToolCall: backend.Encode(shown), Offers: []backend.Offer{
		{Answer: backend.AllowOnce, Label: "Allow"}, {Answer: backend.RejectOnce, Label: "Reject"},
	}}
	return q.Ask(ctx, t.host)
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

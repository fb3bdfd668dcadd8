package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/text"
)

// kindOf returns the kind of a tool according to its annotations.
func kindOf(a *mcp.ToolAnnotations) sdk.ToolKind {
	switch {
	case a == nil:
		return sdk.ToolKindOther
	case a.ReadOnlyHint && a.OpenWorldHint != nil && *a.OpenWorldHint:
		return sdk.ToolKindFetch
	case a.ReadOnlyHint:
		return sdk.ToolKindRead
	case a.DestructiveHint != nil:
		return sdk.ToolKindEdit
	}
	return sdk.ToolKindOther
}

// Call implements [backend.Tools].
func (s *Set) Call(ctx context.Context, u backend.Updates, r backend.ToolRequest) (
	backend.ToolResult, error) {
	var none backend.ToolResult
	if len(r.Arguments) > 0 {
		var object map[string]json.RawMessage
		if json.Unmarshal(r.Arguments, &object) != nil || object == nil {
			return none, fmt.Errorf("the arguments of %s are not a JSON object", r.Name)
		}
	}
	t, err := s.Tool(ctx, r.Name)
	if err != nil {
		return none, err
	}
	call := backend.NewToolCall("mcp", kindOf(t.Annotations), t.CallTitle(), "")
	call.RawInput = r.Arguments
	if len(r.Arguments) == 0 {
		call.RawInput = backend.Raw("{}")
	}
	shown, err := begin(ctx, u, r.ID, call)
	if err != nil {
		return none, err
	}
	call.ToolCallId = shown.ID
	c := &mcpCall{ShownCall: shown, set: s, tool: t, call: call, arguments: r.Arguments}
	result, err := c.run(ctx)
	if err != nil {
		c.showFailure(ctx, err)
		return none, err
	}
	return toolResult(result, s.maxResult), c.showResult(context.WithoutCancel(ctx), result)
}

// mcpCall is one call of a tool.
type mcpCall struct {
	backend.ShownCall
	set       *Set
	tool      mcpclient.Tool
	call      backend.ToolCall // as it begins
	arguments backend.Raw      // empty for none
}

// begin shows a pending call. If the client already sees one with the id, begin only fills in what
// the call does.
func begin(
	ctx context.Context, u backend.Updates, id sdk.ToolCallId, call backend.ToolCall,
) (backend.ShownCall, error) {
	if id == "" {
		return backend.ShowCall(ctx, u, call)
	}
	shown := backend.ShownCall{ID: id, Updates: u}
	return shown, shown.Show(ctx, backend.ToolCall{
		ToolCallUpdate: sdk.ToolCallUpdate{Title: call.Title, Kind: call.Kind}})
}

// run asks for permission if necessary, and calls the tool.
func (c *mcpCall) run(ctx context.Context) (*mcp.CallToolResult, error) {
	if err := c.askPermission(ctx); err != nil {
		return nil, err
	}
	if err := c.ShowStatus(ctx, sdk.ToolCallStatusInProgress, nil); err != nil {
		return nil, err
	}
	return c.set.Set.Call(ctx, c.tool, c.arguments, c.showProgress)
}

// showResult shows the end of the call. The server's content blocks are passed on as they are, up
// to a limit.
func (c *mcpCall) showResult(ctx context.Context, r *mcp.CallToolResult) error {
	status := sdk.ToolCallStatusCompleted
	if r.IsError {
		status = sdk.ToolCallStatusFailed
	}
	bounded := newBoundedContent(c.set.maxShown)
	for _, block := range r.Content {
		bounded.add(block)
	}
	var content []any
	for _, raw := range bounded.blocks {
		content = append(content, map[string]any{"type": "content", "content": raw})
	}
	return c.ShowStatus(ctx, status, content)
}

// showFailure shows that the call was not made or did not complete.
func (c *mcpCall) showFailure(ctx context.Context, err error) {
	message := err.Error()
	if ctx.Err() != nil {
		message = "The call was cancelled."
	}
	_ = c.ShowStatus(context.WithoutCancel(ctx), sdk.ToolCallStatusFailed, backend.TextContent(message))
}

// showProgress is a [mcpclient.ProgressFunc].
func (c *mcpCall) showProgress(ctx context.Context, p *mcp.ProgressNotificationParams) {
	const maxMessage = 500
	progress := strconv.FormatFloat(p.Progress, 'g', 6, 64)
	if p.Total > 0 {
		progress += " of " + strconv.FormatFloat(p.Total, 'g', 6, 64)
	}
	if message := text.Truncate(p.Message, maxMessage); message != "" {
		progress += ": " + message
	}
	_ = c.ShowStatus(ctx, sdk.ToolCallStatusInProgress, backend.TextContent(progress))
}

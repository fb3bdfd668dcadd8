package mcpclient

import (
	"context"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// callStatus is that of a tool call in ACP.
type callStatus string

const (
	pending    callStatus = "pending"
	inProgress callStatus = "in_progress"
	completed  callStatus = "completed"
	failed     callStatus = "failed"
)

// toolCall is a tool_call, a tool_call_update, or the toolCall of a question for permission, which has no kind of update.
type toolCall struct {
	Update  string      `json:"sessionUpdate,omitempty"`
	ID      string      `json:"toolCallId"`
	Title   string      `json:"title,omitempty"`
	Kind    string      `json:"kind,omitempty"`
	Status  callStatus  `json:"status"`
	Content []content   `json:"content,omitempty"`
	Input   backend.Raw `json:"rawInput,omitempty"`
}

type content struct {
	Type    string      `json:"type"`
	Content backend.Raw `json:"content"`
}

func contents(blocks []backend.Raw) []content {
	var all []content
	for _, b := range blocks {
		all = append(all, content{"content", b})
	}
	return all
}

// shape is the call as it is first shown.
func (c *call) shape(status callStatus) toolCall {
	input := c.arguments
	if input == nil {
		input = backend.Raw("{}")
	}
	return toolCall{ID: c.id, Title: c.title(), Kind: "other", Status: status, Input: input}
}

func (c *call) title() string {
	what := c.tool.Remote
	if c.tool.Title != "" && c.tool.Title != what {
		what = fmt.Sprintf("%s (%s)", c.tool.Title, what)
	}
	return cut(oneLine(fmt.Sprintf("%s, of MCP server %s", what, c.tool.Server)), 300)
}

// show shows how the call is.
func (c *call) show(ctx context.Context, status callStatus, blocks []backend.Raw) error {
	update := toolCall{Update: "tool_call_update", ID: c.id, Status: status, Content: contents(blocks)}
	if status == pending {
		update = c.shape(status)
		update.Update = "tool_call"
	}
	return c.updates.Update(ctx, backend.Encode(map[string]any{"update": update}))
}

func textBlock(text string) backend.Raw {
	return backend.Encode(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text})
}

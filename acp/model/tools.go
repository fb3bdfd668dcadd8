package model

import (
	"context"
	"crypto/rand"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
)

// toolbox holds the tools that the model has in a turn's step.
type toolbox struct {
	turn  *turn
	tools []llm.Tool
}

// newToolbox returns the tools that the model may use in a mode.
func (t *turn) newToolbox(ctx context.Context, m mode) (*toolbox, error) {
	return &toolbox{turn: t}, nil
}

// run runs the tool calls of an answer and shows them to the user, which makes them and their results part of the conversation: see meta. Those
// that only read run at the same time, the others one after the other. An error ends the turn.
func (b *toolbox) run(ctx context.Context, calls []llm.ToolCall) error {
	for _, c := range calls {
		call := map[string]any{
			"sessionUpdate": "tool_call", "toolCallId": newID("call"), "title": c.Name, "status": "failed", "rawInput": c.Arguments,
			"rawOutput": map[string]string{"text": "There is no tool " + c.Name + "."},
			"_meta":     meta{Tool: c.Name, Step: b.turn.steps}.encode(),
		}
		u, err := backend.ParseUpdate(backend.Encode(map[string]any{"update": call}))
		if err != nil {
			return err
		}
		if err := b.turn.updates.Update(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// newID returns an id for a tool call that differs from all others of the session.
func newID(prefix string) string { return prefix + "-" + rand.Text()[:16] }

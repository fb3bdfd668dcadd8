package model

import (
	"context"

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

// run runs the tool calls of an answer, shows them to the user, and returns their results in the same order. Those that only read run at the
// same time, the others one after the other. Results of failed calls say so; an error ends the turn.
func (b *toolbox) run(ctx context.Context, calls []llm.ToolCall) ([]llm.ToolResult, error) {
	var results []llm.ToolResult
	for _, c := range calls {
		results = append(results, llm.ToolResult{ID: c.ID, Failed: true, Content: []llm.Part{llm.Text("There is no tool " + c.Name + ".")}})
	}
	return results, nil
}

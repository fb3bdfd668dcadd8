package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// A request that a server does not accept would be rejected for ever if it was only sent again with
// the next prompt. The server's words do not tell the reason. If what the model has not answered
// has images or documents, they are left out. If that does not help, the prompt is; if the prompt
// before it was rejected too, everything that the model has not answered is. The server has accepted
// the rest before, except for the model's last answer and what only another model accepts: only the
// user can decide about these.

// leaveOutPrompt leaves out the last prompt and what followed it, or everything that the model has
// not answered.
func (c *conversation) leaveOutPrompt(rejected bool) {
	i, again := len(c.past)-1, rejected && c.rejected
	for again && i > 0 && len(unanswered(c.past[i].before.messages)) > 0 {
		i--
	}
	if i < 0 {
		return
	}
	for j := range c.past[i:] {
		c.past[i+j].hidden = c.past[i+j].hidden || rejected
	}
	ignored, before := c.ignored, c.rejected
	c.goBack(c.past[i])
	c.ignored, c.rejected = ignored, before
}

// leaveOutMedia replaces the images and documents that the model has not answered by notes.
func (c *conversation) leaveOutMedia() {
	c.endMessage()
	last := unanswered(c.messages)
	copy(last, llm.ReplaceMedia(last, func(llm.Media) llm.Text {
		return "[An image or document was left out, because your server rejected it.]"
	}))
}

// forgetThoughts removes what the model has thought.
func (c *conversation) forgetThoughts() {
	c.endMessage()
	copy(c.messages, llm.ChangeParts(c.messages, func(p llm.Part) llm.Part {
		switch part := p.(type) {
		case llm.Thinking:
			return nil
		case llm.ToolCall:
			part.Attached = nil // a signature
			return part
		}
		return p
	}))
}

// rejects reports whether an error means that the server does not accept the request as it is.
func rejects(e *llm.Error) bool {
	return slices.Contains([]llm.Kind{llm.Rejected, llm.Filtered, llm.StaleThoughts}, e.Kind)
}

// mayReject reports whether an error can mean that, although it says something else: servers and
// what is in front of them give content that they cannot handle various names.
func mayReject(e *llm.Error) bool {
	switch e.Kind {
	case llm.Unreachable:
		return false
	case llm.Unpaid:
		return e.Status != http.StatusPaymentRequired
	case llm.KeyRejected:
		return e.Status == http.StatusForbidden
	case llm.Overloaded:
		return e.Status == http.StatusInternalServerError || e.Status == http.StatusConflict
	}
	return true
}

// leaveOut is called with the error of a request. If the server may have rejected new images or
// documents, leaveOut leaves them out of the next request and all further ones,
// tells the user, and returns nil. So it does with thoughts, without a word.
func (t *modelTurn) leaveOut(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*llm.Error](err)
	if ok && failed.Kind == llm.StaleThoughts && t.steps >= t.unforgotten {
		t.unforgotten = t.steps + 2
		return t.updates.Update(ctx, backend.MetaChunk(sessionstore.AgentThoughtChunk, "",
			entry{WithoutThoughts: true}))
	}
	if !ok || !rejects(failed) && !(mayReject(failed) && t.conversation.wasRejected()) ||
		!t.conversation.endsWithMedia() {
		return err
	}
	said := fmt.Sprintf("\n\n*%s. The model continues without the new images and documents; the "+
		"history of the session keeps them.*\n\n", describeFailure(failed))
	return t.tell(ctx, entry{WithoutMedia: true}, said)
}

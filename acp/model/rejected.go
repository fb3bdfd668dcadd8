package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/acp-agent/acp-agent/internal/llm"
)

// A request that a server does not accept would be rejected for ever if it was only sent again with
// the next prompt. The server's words do not tell the reason. If there are images and documents,
// the request is sent without them, and if the server accepts that, they are left out of all
// further ones. Otherwise the prompt is left out; if the prompt before it was rejected too,
// everything that the model has not answered is. The server has accepted the rest before, except
// for the model's last answer: only the user can decide about that, with /undo.

// omission is a part of the conversation that requests do not have. It is stored in an update's
// _meta, as the reason why the model does not see the part.
type omission string

// All omissions.
const (
	lastMedia omission = "new media" // images and documents of the last message
	allMedia  omission = "media"     // all images and documents
)

// String says what is left out.
func (o omission) String() string {
	if o == lastMedia {
		return "the new images and documents"
	}
	return "the images and documents of this session"
}

// from returns messages without what o leaves out.
func (o omission) from(messages []llm.Message) []llm.Message {
	first := 0
	switch {
	case o == "" || len(messages) == 0:
		return messages
	case o == lastMedia:
		first = len(messages) - 1
	}
	note := func(llm.Media) llm.Text {
		return "[An image or document was left out, because your server rejected it.]"
	}
	return slices.Concat(messages[:first], llm.ReplaceMedia(messages[first:], note))
}

// place is a place in a list of messages: after so many messages, the last of which has so many
// parts.
type place struct{ messages, parts int }

// end returns the place at the end of messages.
func end(messages []llm.Message) place {
	if len(messages) == 0 {
		return place{}
	}
	return place{len(messages), len(messages[len(messages)-1].Parts)}
}

// upTo returns the messages before a place. They can be appended to.
func upTo(messages []llm.Message, p place) []llm.Message {
	messages = slices.Clone(messages[:min(p.messages, len(messages))])
	if last := len(messages) - 1; last >= 0 {
		parts := messages[last].Parts
		messages[last].Parts = slices.Clip(parts[:min(p.parts, len(parts))])
	}
	return messages
}

// leaveOutPrompt leaves out the last prompt and what followed it, or everything that the model has
// not answered. The lock must be held.
func (c *conversation) leaveOutPrompt(m meta) {
	i, again := len(c.past)-1, m.Rejected && c.rejected
	for again && i > 0 && !c.past[i].before.answered {
		i--
	}
	if i < 0 {
		return
	}
	for j := range c.past[i:] {
		c.past[i+j].hidden = c.past[i+j].hidden || m.Rejected
	}
	ignored, rejected := c.ignored, c.rejected
	c.goBack(c.past[i])
	c.ignored, c.rejected = ignored, rejected
}

// appended returns messages with further parts, in the last message if it has the same role.
func appended(messages []llm.Message, role llm.Role, parts ...llm.Part) []llm.Message {
	last := len(messages) - 1
	switch {
	case len(parts) == 0:
	case last >= 0 && messages[last].Role == role:
		messages[last].Parts = append(messages[last].Parts, parts...)
	default:
		messages = append(messages, llm.Message{Role: role, Parts: slices.Clone(parts)})
	}
	return messages
}

// suspect returns what may be the reason why the server has rejected the conversation: the new
// images and documents, or older ones that another model accepted. It returns "" if it has neither.
func (c *conversation) suspect() omission {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	has := func(m llm.Message) bool { return slices.ContainsFunc(m.Parts, llm.HasMedia) }
	switch last := len(c.messages) - 1; {
	case last >= 0 && has(c.messages[last]):
		return lastMedia
	case slices.ContainsFunc(c.messages, has):
		return allMedia
	}
	return ""
}

// try leaves something out of the next requests only.
func (c *conversation) try(o omission) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trial = o
}

// wasRejected reports whether the server has not accepted the last request of the turn before.
func (c *conversation) wasRejected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rejected
}

// rejects reports whether an error means that the server does not accept the request as it is.
func rejects(e *llm.Error) bool { return e.Kind == llm.Rejected || e.Kind == llm.Filtered }

// mayReject reports whether an error can mean that, although it says something else: servers and
// what is in front of them give content that they cannot handle various names.
func mayReject(e *llm.Error) bool {
	switch e.Kind {
	case llm.Rejected, llm.Filtered, llm.Misconfigured, llm.Malformed, llm.Forbidden, llm.Slipped,
		llm.TooLong: // a part of it may be, which a summary has too
		return true
	case llm.Unpaid:
		return e.Status != http.StatusPaymentRequired
	case llm.KeyRejected:
		return e.Status == http.StatusForbidden
	case llm.Overloaded:
		return e.Status == http.StatusInternalServerError || e.Status == http.StatusConflict
	}
	return false
}

// rejections are what a turn knows of requests that the model's server does not accept.
type rejections struct {
	accepted  bool       // the server has accepted the last request
	rejection *llm.Error // of the request that is sent again without images and documents
	trial     omission   // these
	omissions int        // how often something was left out
}

// maxOmissions is how often a turn leaves something out, because a model may do again what its
// server rejects.
const maxOmissions = 3

// leaveOut is called with the error of a request. If the server has rejected what was sent, and
// images or documents may be the reason, it makes the next request leave them out, and returns nil.
// If the server rejects that too, it returns the error of the first request.
func (t *modelTurn) leaveOut(err error) error {
	failed, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok || t.accepted || !mayReject(failed):
		return err
	case t.rejection != nil:
		err, t.rejection = t.rejection, nil
		t.conversation.try("")
		return err
	case t.omissions == maxOmissions || !rejects(failed) && !t.conversation.wasRejected():
		return err
	}
	if t.trial = t.conversation.suspect(); t.trial == "" {
		return err
	}
	t.rejection = failed
	t.conversation.try(t.trial)
	return nil
}

// accept is called when the server has accepted a request. If the first attempt was rejected, it
// leaves out of all further ones what that had more, and tells the user.
func (t *modelTurn) accept(ctx context.Context) error {
	t.accepted = true
	if t.rejection == nil {
		return nil
	}
	said := fmt.Sprintf("\n\n*%s. The model continues without %s; the history of the session keeps "+
		"them.*\n\n", describeFailure(t.rejection), t.trial)
	t.rejection = nil
	t.omissions++
	t.conversation.try("")
	return t.tell(ctx, meta{Omitted: t.trial}, said)
}

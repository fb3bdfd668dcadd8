package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
)

// A request that a server does not accept would be rejected for ever if it was only sent again with
// the next prompt. What a server dislikes cannot be told from its words, so parts of the
// conversation are left out of the request, one after another, until it is accepted. Only then they
// are left out for good. If nothing helps, the user's new prompt is.

// omission is a part of the conversation that requests do not have. It is stored in an update's
// _meta, as the reason why the model does not see the part.
type omission struct {
	Kind omittedKind `json:"kind"`
	// Turns is how many turns before the current one an omission of these has.
	Turns int `json:"turns,omitempty"`
}

// omittedKind says which parts of a conversation are left out.
type omittedKind string

// All kinds, in the order in which they are tried.
const (
	lastMedia      omittedKind = "new media" // images and documents of the last message
	allMedia       omittedKind = "media"     // all images and documents
	lastResults    omittedKind = "results"   // the results of tools in the last message
	lastAnswer     omittedKind = "answer"    // the model's last calls and their results
	allThoughts    omittedKind = "thoughts"  // what the model thought, and what belongs to its calls
	precedingTurns omittedKind = "turns"     // prompts before the current one, and what followed
)

// describe tells the user what is left out.
func (o omission) describe() string {
	switch o.Kind {
	case lastMedia:
		return "the new images and documents"
	case allMedia:
		return "the images and documents of this session"
	case lastResults:
		return "the last results of its tools"
	case lastAnswer:
		return "its last tool calls and their results"
	case allThoughts:
		return "what it thought earlier"
	}
	if o.Turns == 1 {
		return "your message before this one and its answer"
	}
	return fmt.Sprintf("the %d messages before this one and their answers", o.Turns)
}

// What the model sees in place of what is left out.
const (
	mediumOmitted = "[An image or document was left out, because your server rejected it.]"
	resultOmitted = "[This result was left out, because your server rejected it.]"
	answerOmitted = "[Your last tool calls were carried out. They and their results were left out, " +
		"because your server rejected them.]"
)

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

// turnsBefore returns how many turns can be left out before the current one. A summary counts as
// one.
func (c *conversation) turnsBefore() int {
	n := len(c.turns) - 1
	if n >= 0 && c.turns[0] != (place{}) {
		n++
	}
	return max(n, 0)
}

// before returns the place where the n-th turn before the current one begins.
func (c *conversation) before(n int) place {
	if at := len(c.turns) - 1 - n; at >= 0 {
		return c.turns[at]
	}
	return place{}
}

// without returns messages, which have the structure of those of the conversation, without what an
// omission has.
func (c *conversation) without(messages []llm.Message, o omission) []llm.Message {
	last := len(messages) - 1
	if last < 0 {
		return messages
	}
	switch o.Kind {
	case lastMedia:
		return replaced(messages, last, withoutMedia)
	case allMedia:
		return replaced(messages, 0, withoutMedia)
	case lastResults:
		return replaced(messages, last, func(p llm.Part) llm.Part {
			if r, ok := p.(llm.ToolResult); ok {
				r.Content = []llm.Part{llm.Text(resultOmitted)}
				return r
			}
			return p
		})
	case lastAnswer:
		for ; last > 0 && messages[last].Role == llm.User; last-- {
		}
		kept := upTo(messages, end(messages[:max(last, c.before(0).messages)]))
		return appended(kept, llm.User, llm.Text(answerOmitted))
	case allThoughts:
		return replaced(messages, 0, withoutThought)
	case precedingTurns:
		return appended(upTo(messages, c.before(o.Turns)), llm.User, c.prompt...)
	}
	return messages
}

// omit leaves out a part of the conversation for good. The lock must be held.
func (c *conversation) omit(o omission) {
	c.end()
	if o.Kind == precedingTurns {
		begin := c.before(o.Turns)
		c.truncate(c.without(c.messages, o))
		c.turns = append(c.turns[:max(0, len(c.turns)-1-o.Turns)], begin)
		return
	}
	c.truncate(c.without(c.messages, o))
}

// truncate replaces the messages by shorter ones.
func (c *conversation) truncate(messages []llm.Message) {
	c.messages = messages
	c.fitting = min(c.fitting, len(messages))
	c.cut = min(c.cut, len(resultsOf(messages)))
}

// replaced returns messages with other parts in those from first on.
func replaced(messages []llm.Message, first int, by func(llm.Part) llm.Part) []llm.Message {
	messages = slices.Clone(messages)
	for i := first; i < len(messages); i++ {
		parts := slices.Clone(messages[i].Parts)
		for j, p := range parts {
			parts[j] = by(p)
		}
		messages[i].Parts = parts
	}
	return messages
}

func withoutMedia(p llm.Part) llm.Part {
	switch p := p.(type) {
	case llm.Media:
		return llm.Text(mediumOmitted)
	case llm.ToolResult:
		p.Content = slices.Clone(p.Content)
		for i, content := range p.Content {
			p.Content[i] = withoutMedia(content)
		}
		return p
	}
	return p
}

// withoutThought returns a part without what only its model understands. A thought becomes one of
// no model, which no server is sent.
func withoutThought(p llm.Part) llm.Part {
	switch p := p.(type) {
	case llm.Thinking:
		return llm.Thinking{}
	case llm.ToolCall:
		p.From, p.Attached = "", nil
		return p
	}
	return p
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

// suspects returns what may be the reason why a server has rejected the conversation, in the order
// in which it is left out. The new parts come first. If the server has not accepted the request
// before either, the reason can be older.
func (c *conversation) suspects(rejected bool) (all []omission) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	last := len(c.messages) - 1
	if last < 0 || !rejected && !c.rejected {
		return nil
	}
	has := func(of []llm.Message, is func(llm.Part) bool) bool {
		return slices.ContainsFunc(of, func(m llm.Message) bool {
			return slices.ContainsFunc(m.Parts, is)
		})
	}
	if has(c.messages[last:], llm.HasMedia) {
		all = append(all, omission{Kind: lastMedia})
	}
	if has(c.messages[:last], llm.HasMedia) {
		all = append(all, omission{Kind: allMedia})
	}
	if len(resultsOf(c.messages[last:])) > 0 {
		all = append(all, omission{Kind: lastResults})
		if c.before(0).messages < last {
			all = append(all, omission{Kind: lastAnswer})
		}
	}
	if !c.rejected {
		return all
	}
	if has(c.messages, isThought) {
		all = append(all, omission{Kind: allThoughts})
	}
	most := c.turnsBefore()
	for n := 1; n < most; n *= 2 {
		all = append(all, omission{precedingTurns, n})
	}
	if most > 0 {
		all = append(all, omission{precedingTurns, most})
	}
	return all
}

// isThought reports whether a part has something that only its model understands.
func isThought(p llm.Part) bool {
	switch p := p.(type) {
	case llm.Thinking:
		return p.From != ""
	case llm.ToolCall:
		return p.Attached != nil
	}
	return false
}

// try leaves something out of the next requests only.
func (c *conversation) try(o omission) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trial = o
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
	rejection *llm.Error // of the request that is sent again without parts of it
	trial     omission   // what it is sent without
	untried   []omission // what else can be left out of it
	omissions int        // how often something was left out for good
	alone     bool       // the prompt was rejected without the turns before it too
}

// maxOmissions is how often a turn leaves something out, because a model may do again what its
// server rejects.
const maxOmissions = 3

// leaveOut is called with the error of a request. If the server has rejected what was sent, it
// makes the next request leave out what may be the reason, and returns nil. If nothing is left to
// try, it returns the error of the first request.
func (t *modelTurn) leaveOut(err error) error {
	failed, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok || t.accepted || !mayReject(failed):
		return err
	case t.rejection == nil:
		t.rejection = failed
		if t.omissions < maxOmissions {
			t.untried = t.conversation.suspects(rejects(failed))
		}
	}
	if len(t.untried) == 0 {
		err, t.rejection = t.rejection, nil
		t.conversation.try(omission{})
		return err
	}
	t.trial, t.untried = t.untried[0], t.untried[1:]
	t.alone = t.trial.Kind == precedingTurns && len(t.untried) == 0
	t.conversation.try(t.trial)
	return nil
}

// accept is called when the server has accepted a request. If the first attempt was rejected, it
// leaves out for good what that had more, and tells the user.
func (t *modelTurn) accept(ctx context.Context) error {
	t.accepted = true
	if t.rejection == nil {
		return nil
	}
	said := fmt.Sprintf("\n\n*%s. The model goes on without %s, which stays in the history of the "+
		"session.*\n\n", describeFailure(t.rejection), t.trial.describe())
	t.rejection, t.untried = nil, nil
	t.omissions++
	t.alone = false
	t.conversation.try(omission{})
	return t.tell(ctx, meta{Omitted: &t.trial}, said)
}

// reject ends a turn whose prompt the server does not accept. It tells the user, and leaves the
// prompt and what followed it out of further requests.
func (t *modelTurn) reject(ctx context.Context, e *llm.Error) (backend.Raw, error) {
	said := "\n\n" + describeFailure(e) + ". Your message is left out of further requests, and " +
		"stays in the history of the session. "
	switch {
	case t.alone:
		said += "The server does not accept it without the messages before it either, so the reason " +
			"may also be the instructions of a folder, a tool, or the configuration of model " +
			codeOf(t.endpoint) + ". Correct that, or choose another model."
	case e.Kind == llm.Filtered:
		said += "Send another one to continue, or choose another model."
	default:
		said += "Send it again in another form, correct the configuration of model " +
			codeOf(t.endpoint) + " if that is the reason, or choose another model."
	}
	return failedTurn(), t.tell(ctx, meta{Refused: true, Rejected: true}, said)
}

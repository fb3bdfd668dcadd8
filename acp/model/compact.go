package model

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// keptResults is how many of the newest results of tools are kept if possible.
	keptResults = 10
	// leftOut replaces an older result.
	leftOut = "[result left out to save space: call the tool again if you need it]"
	// imageTokens and bytesPerToken are for estimates.
	imageTokens, bytesPerToken = 1500, 4
	// maxTranscribed is how many bytes of arguments or of a result the model is given to summarise.
	maxTranscribed = 2000
	// summaryIntroduction precedes a summary in the message that replaces the conversation.
	summaryIntroduction = "[The conversation so far was replaced by this summary of it.]\n\n"
)

// fit adds the conversation to a request. If it is too long for the model, old results of tools are
// left out; if that is not enough, the model summarises the conversation first, and the user is
// told.
func (t *turn) fit(ctx context.Context, r llm.Request) (llm.Request, error) {
	model := t.endpoint.Model()
	limit := room(model)
	fitted, tokens := t.conversation.request(r, model)
	if tokens > limit*9/10 && t.steps >= t.uncompacted {
		if err := t.makeRoom(ctx); err != nil {
			return r, err
		}
		fitted, tokens = t.conversation.request(r, model)
	}
	if tokens > limit {
		return r, tooLong(fmt.Sprintf("about %d tokens, of which instructions and tools are %d; "+
			"%d are possible, with room for the answer", tokens, estimate(r), limit))
	}
	return fitted, nil
}

// room returns how many tokens a request may have, so that there is room for the answer.
func room(m llm.Model) int {
	answer := cmp.Or(m.MaxTokens, min(8192, m.ContextTokens/4))
	return max(m.ContextTokens-answer, m.ContextTokens/4)
}

// tooLong says what to do about a conversation that remains too long.
func tooLong(why string) error {
	return &llm.Error{Kind: llm.TooLong, Message: "The conversation is too long for the model (" +
		why + "). Send a shorter message, choose a model with a larger context, or start a new " +
		"session. If the model accepts more, set its contextTokens"}
}

// shorten is called with the error of a request. If the server says that the request is too long,
// shorten summarises the conversation and returns nil, unless that was just done.
func (t *turn) shorten(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok || failed.Kind != llm.TooLong {
		return err
	}
	if t.steps < t.uncompacted {
		return tooLong(failed.Message)
	}
	return t.makeRoom(ctx)
}

// makeRoom summarises the conversation in the middle of a turn, unless there is only the user's
// message. If that fails, it is not tried again in this turn.
func (t *turn) makeRoom(ctx context.Context) error {
	t.uncompacted = maxSteps + 1
	if t.conversation.isNew() {
		return nil
	}
	done, err := t.summarise(ctx, "", meta{Keep: true})
	if done {
		t.uncompacted = t.steps + 2
	}
	return err
}

// compact answers /compact.
func (t *turn) compact(ctx context.Context, focus string) (backend.Raw, error) {
	stopped := backend.Stopped(sdk.StopReasonEndTurn)
	if t.conversation.transcript() == "" {
		return stopped, t.note(ctx, "There is nothing to summarise yet.")
	}
	done, err := t.summarise(ctx, focus, meta{})
	if !done {
		stopped = failedTurn()
	}
	return stopped, err
}

// summarise has the model summarise the conversation, and replaces it as m says. focus says what
// the user wants to keep in particular, "" for nothing. If the model fails, the user is told, and
// the conversation stays as it is.
func (t *turn) summarise(ctx context.Context, focus string, m meta) (done bool, err error) {
	transcript := text.Shorten(t.conversation.transcript(), 3*room(t.endpoint.Model()))
	err = t.think(ctx, "Summarising the conversation, to make room for more.\n\n")
	if err != nil {
		return false, err
	}
	order := "This is the conversation:\n\n" + transcript + "Summarise it."
	if focus != "" {
		order += " Keep in particular: " + focus
	}
	request := llm.Request{System: summaryPrompt, Messages: []llm.Message{llm.UserText(order)}}
	onRetry := func(r llm.Retry) error { return t.showRetry(ctx, r) }
	answer, finish, err := t.endpoint.collect(ctx, request, onRetry)
	m.Summary = strings.TrimSpace(answer)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
	case finish.Reason == llm.Refused:
		err = errors.New("the model refuses to")
	case m.Summary == "":
		err = errors.New("the model's answer is empty")
	}
	if err != nil {
		return false, t.note(ctx, "\n\nCannot summarise the conversation, which stays as it is: "+
			text.Plain(err.Error())+".\n\n")
	}
	marker := fmt.Sprintf("\n\n*The model continues with a summary of the conversation so far "+
		"(%d words instead of %d).*\n\n",
		len(strings.Fields(m.Summary)), len(strings.Fields(transcript)))
	return true, t.updates.Update(ctx, m.message(marker))
}

//go:embed summary.md
var summaryPrompt string

// request adds the messages to a request as model m can be sent them. It returns the request with
// an estimate of its tokens.
func (c *conversation) request(r llm.Request, m llm.Model) (llm.Request, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	r.Messages = c.sendable(m)
	tokens := c.tokens(r)
	limit := room(m)
	for _, pass := range []struct{ above, kept int }{
		{limit * 3 / 4, keptResults}, {limit * 9 / 10, max(c.unseen(), 2)},
	} {
		if tokens > pass.above {
			// More than necessary, so that the beginning of further requests stays the same.
			c.cutResults(tokens-limit/2, pass.kept)
			r.Messages = c.sendable(m)
			tokens = c.tokens(r)
		}
	}
	c.sent = estimate(r)
	return r, tokens
}

// count notes how many tokens the server has counted in the last request. A number that is much too
// small counts something else.
func (c *conversation) count(tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tokens > c.sent/4 {
		c.counted, c.estimated = tokens, c.sent
	}
}

// tokens returns how many tokens a request probably has: those that the server has counted in an
// earlier one, and an estimate of the difference.
func (c *conversation) tokens(r llm.Request) int { return c.counted + estimate(r) - c.estimated }

// unseen returns how many results the model was not sent before.
func (c *conversation) unseen() int { return len(resultsOf(c.messages[len(c.messages)-1:])) }

// resultsOf returns where the results of tools are in messages, oldest first.
func resultsOf(messages []llm.Message) (places []*llm.Part) {
	for _, m := range messages {
		for i, p := range m.Parts {
			if _, ok := p.(llm.ToolResult); ok {
				places = append(places, &m.Parts[i])
			}
		}
	}
	return places
}

// cutResults leaves out results of tools, oldest first, until that saves enough tokens or only that
// many of the newest are left. It shortens them to the length that a summary uses, which frees the
// rest.
func (c *conversation) cutResults(tokens, kept int) {
	for places := resultsOf(c.messages); c.cut < len(places)-kept && tokens > 0; c.cut++ {
		r := (*places[c.cut]).(llm.ToolResult)
		tokens -= tokensOf(r) - tokensOf(withoutContent(r))
		r.Content = slices.Clone(r.Content)
		for i, part := range r.Content {
			r.Content[i] = llm.Text("[image]")
			if said, ok := part.(llm.Text); ok {
				r.Content[i] = llm.Text(strings.Clone(text.Shorten(string(said), maxTranscribed)))
			}
		}
		*places[c.cut] = r
	}
}

// withoutContent returns r with its content left out, unless that would save nothing.
func withoutContent(r llm.ToolResult) llm.ToolResult {
	short := llm.ToolResult{ID: r.ID, Failed: r.Failed, Content: []llm.Part{llm.Text(leftOut)}}
	if tokensOf(r) <= tokensOf(short) {
		return r
	}
	return short
}

// sendable returns the messages as model m can be sent them: without the results that are cut, and
// without images if it does not accept them.
func (c *conversation) sendable(m llm.Model) []llm.Message {
	messages := slices.Clone(c.messages)
	for i := range messages {
		messages[i].Parts = slices.Clone(messages[i].Parts)
	}
	places := resultsOf(messages)
	for _, place := range places[:min(c.cut, len(places))] {
		*place = withoutContent((*place).(llm.ToolResult))
	}
	if m.TextOnly {
		return llm.WithoutImages(messages) // as the client does, so that they are not counted
	}
	return messages
}

// estimate returns about how many tokens a request has.
func estimate(r llm.Request) int {
	n := len(r.System) / bytesPerToken
	for _, t := range r.Tools {
		n += (len(t.Name) + len(t.Description) + len(t.Schema)) / bytesPerToken
	}
	for _, m := range r.Messages {
		n += tokensOf(m.Parts...)
	}
	return n
}

// tokensOf returns about how many tokens parts have.
func tokensOf(parts ...llm.Part) int {
	n := 0
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			n += len(p) / bytesPerToken
		case llm.Image:
			n += imageTokens
		case llm.Thinking:
			n += (len(p.Text) + len(p.Signature) + len(p.Redacted) + len(p.Attached)) /
				bytesPerToken
		case llm.ToolCall:
			n += (len(p.Name) + len(p.Arguments) + len(p.Attached)) / bytesPerToken
		case llm.ToolResult:
			n += tokensOf(p.Content...)
		}
		n += 4 // what is around it
	}
	return n
}

// isNew reports whether there is nothing but the user's last message.
func (c *conversation) isNew() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.messages) == 1 && len(c.messages[0].Parts) == len(c.prompt)
}

// transcript returns the conversation as text, with long results shortened.
func (c *conversation) transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	return transcribe(c.messages)
}

// transcribe returns messages as text, with long results shortened. The texts are indented, so that
// none of them can continue as if somebody else had written it.
func transcribe(messages []llm.Message) string {
	var b strings.Builder
	add := func(from, said string) {
		said = strings.ReplaceAll(text.Plain(said), "\n", "\n\t")
		fmt.Fprintf(&b, "%s:\n\t%s\n\n", from, said)
	}
	names := map[llm.Role]string{llm.User: "User", llm.Assistant: "Agent"}
	for _, m := range messages {
		for _, part := range m.Parts {
			switch p := part.(type) {
			case llm.Text:
				add(names[m.Role], string(p))
			case llm.Image:
				add("User", "(an image)")
			case llm.ToolCall:
				add("Agent calls "+p.Name, text.Shorten(p.Arguments, maxTranscribed))
			case llm.ToolResult:
				for _, content := range p.Content {
					if t, ok := content.(llm.Text); ok {
						add("Result", text.Shorten(string(t), maxTranscribed))
					}
				}
			}
		}
	}
	return b.String()
}

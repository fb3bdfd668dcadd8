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
	// summaryPause is the minimum of requests of a turn between two summaries.
	summaryPause = 8
	// summaryIntroduction precedes a summary in the message that replaces the conversation.
	summaryIntroduction = "[The conversation so far was replaced by this summary of it.]\n\n"
	// keptResults is how many of the newest tool results are kept. More are kept if the model has
	// not seen them.
	keptResults = 2
	// tooLarge is appended to a result that was shortened to fit the model's context.
	tooLarge = "\n[shortened to fit into your context: ask for less at a time]"
	// leftOut replaces an older result.
	leftOut = "[result left out to save space: call the tool again if you need it]"
	// imageTokens and bytesPerToken are for estimates.
	imageTokens, bytesPerToken = 1500, 4
	// pdfBytesPerToken likewise: a page has about 2,000 tokens and 50 KB.
	pdfBytesPerToken = 25
	// smallResults is the maximum of tokens with which the results of an answer cannot be the
	// reason why a server rejects a request as too long.
	smallResults = 1000
	// maxTranscribed limits arguments and results in the text that the model summarises, in bytes.
	maxTranscribed = 2000
)

// fit adds the conversation to a request. If it is too long for the model, fit leaves out old
// results of tools. If that is not enough, it first lets the model summarise the conversation, and
// tells the user.
func (t *modelTurn) fit(ctx context.Context, r llm.Request) (llm.Request, error) {
	t.endpoint.AskWindow(ctx)
	model := t.endpoint.Model()
	limit := room(model)
	// The server has cached the beginning of the request, so saving a little is not worth it.
	fitted, tokens := t.conversation.request(r, model, limit/6)
	if tokens > limit*9/10 && t.steps >= t.uncompacted {
		if err := t.makeRoom(ctx); err != nil {
			return r, err
		}
	}
	if tokens > limit*9/10 {
		fitted, tokens = t.conversation.request(r, model, 0)
	}
	if tokens > limit {
		why := fmt.Sprintf("about %d tokens, of which instructions and tools are %d; "+
			"%d are possible, with room for the answer", tokens, estimate(r), limit)
		if estimate(r) > limit*3/4 {
			return r, &llm.Error{Kind: llm.TooLong, Message: "The instructions and tools do not fit into " +
				"the model's context (" + why + "). Choose a model with a larger context, or leave out " +
				"folders or MCP servers. If the model accepts more, set its contextTokens"}
		}
		return r, tooLong(why)
	}
	return fitted, nil
}

// tooLong tells the user what to do about a conversation that remains too long.
func tooLong(why string) error {
	return &llm.Error{Kind: llm.TooLong, Message: "The conversation is too long for the model (" +
		why + "). Send a shorter message, choose a model with a larger context, or start a new " +
		"session. If the model accepts more, set its contextTokens"}
}

// shorten is called with the error of a request. If the server says that the request is too long,
// shorten makes the conversation shorter and returns nil: it cuts new results that are large, or
// summarises the conversation, unless it has just been summarised.
func (t *modelTurn) shorten(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok || failed.Kind != llm.TooLong {
		return err
	}
	if t.conversation.shortenNewest() {
		return nil
	}
	if t.steps < t.uncompacted {
		return tooLong(failed.Message)
	}
	return t.makeRoom(ctx)
}

// makeRoom summarises the conversation in the middle of a turn, unless there is only the user's
// message. If that fails, it is not tried again in this turn.
func (t *modelTurn) makeRoom(ctx context.Context) error {
	t.uncompacted = maxSteps + 1
	if t.conversation.isNew() {
		return nil
	}
	done, err := t.summarise(ctx, "", entry{Keep: true})
	if done {
		t.uncompacted = t.steps + summaryPause
	}
	return err
}

// compact answers /compact.
func (t *modelTurn) compact(ctx context.Context, focus string) (backend.Raw, error) {
	stopped := backend.Stopped(sdk.StopReasonEndTurn)
	if t.conversation.transcript("", nil) == "" {
		return stopped, t.note(ctx, "There is nothing to summarise yet.")
	}
	done, err := t.summarise(ctx, focus, entry{})
	if !done {
		stopped = backend.FailedTurn()
	}
	return stopped, err
}

// summarise lets the model summarise the conversation, and replaces that as e says. focus names
// what the user wants to keep, or is "". If the model fails, it tells the user, and leaves the
// conversation as it is.
func (t *modelTurn) summarise(ctx context.Context, focus string, e entry) (done bool, err error) {
	err = t.think(ctx, "Summarising the conversation, to make room for more.\n\n")
	if err != nil {
		return false, err
	}
	summary, err := t.askForSummary(ctx, focus)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		return false, t.updates.Update(ctx, message(entry{Note: true}, "\n\nCannot summarise the "+
			"conversation, which was not changed: "+text.Plain(err.Error())+".\n\n"))
	}
	e.Summary = summary
	return true, t.updates.Update(ctx, message(e, "\n\n*The model continues with a summary of the "+
		"conversation so far.*\n\n"))
}

// smallTranscript is the size of a transcript, in bytes, that is not shortened further if the
// server says that it is too long.
const smallTranscript = 8 << 10

// askForSummary asks the model for a summary of the conversation, of a shorter transcript if the
// server says that it is too long.
func (t *modelTurn) askForSummary(ctx context.Context, focus string) (string, error) {
	if focus != "" {
		focus = " Keep in particular: " + focus
	}
	onRetry := func(r llm.Retry) error { return t.think(ctx, describeRetry(r)+"\n\n") }
	for most := 3 * room(t.endpoint.Model()); ; {
		transcript := text.Shorten(t.conversation.transcript("", nil), most)
		order := "This is the conversation:\n\n" + transcript + "Summarise it." + focus
		answer, finish, err := collect(ctx, t.endpoint.Client, llm.Request{
			System: summaryPrompt, Messages: []llm.Message{llm.UserText(order)}}, onRetry)
		if _, failed := t.pay(ctx, finish.Usage); err == nil {
			err = failed
		}
		summary := strings.TrimSpace(answer)
		if err == nil && summary == "" {
			err = errors.New("the model's answer is empty")
		}
		failed, ok := errors.AsType[*llm.Error](err)
		if !ok || failed.Kind != llm.TooLong || len(transcript) <= smallTranscript {
			return summary, err
		}
		most = len(transcript) / 2
	}
}

//go:embed summary.md
var summaryPrompt string

// budget makes requests fit into the model's context: it estimates their tokens, and shortens
// results of tools or leaves them out.
type budget struct {
	excerpts map[string]string // of results that are left out, by ID, for summaries
	fitting  int               // number of messages without results that are too large
	sent     int               // estimate for the last request
	missed   int               // how many more tokens an earlier request had than was estimated
}

// room returns how many tokens a request may have, so that there is room for the answer.
func room(m llm.Model) int {
	answer := cmp.Or(m.MaxTokens, min(8192, m.ContextTokens/4))
	return max(m.ContextTokens-answer, m.ContextTokens/4)
}

// fit returns a request with messages in the form that model m accepts, and an estimate of its
// tokens. If there are too many, it leaves out results, unless that saves fewer than least.
func (b *budget) fit(
	r llm.Request, messages []llm.Message, m llm.Model, least int,
) (llm.Request, int) {
	limit := room(m)
	b.shortenResults(messages, max(limit-estimate(r), limit/4))
	r.Messages = m.Readable(messages) // as the client does, so that omitted parts are not counted
	if estimate(r)+b.missed > limit*9/10 {
		// Leave out more than necessary, so that the beginning of many further requests stays the
		// same.
		b.cutResults(messages, estimate(r)+b.missed-limit/2, least)
		r.Messages = m.Readable(messages)
	}
	b.sent = estimate(r)
	return r, b.sent + b.missed
}

// shortenResults shortens new results that are large compared to a limit in tokens, the room for
// messages: one result gets at most a quarter of it, and all results of an answer half of it.
func (b *budget) shortenResults(messages []llm.Message, limit int) {
	for _, m := range messages[min(b.fitting, len(messages)):] {
		places := resultsOf([]llm.Message{m})
		for _, place := range places {
			shortenResult(place, min(limit/4, limit/2/len(places)))
		}
	}
	b.fitting = len(messages)
}

// shortenResult shortens a result to a number of tokens. Its text comes before its media.
func shortenResult(place *llm.Part, most int) {
	r := (*place).(llm.ToolResult)
	if tokensOf(r) <= most {
		return
	}
	r.Content = slices.Clone(r.Content)
	for i, part := range r.Content {
		switch p := part.(type) {
		case llm.Text:
			if len(p) > most*bytesPerToken {
				said := strings.TrimSuffix(string(p), tooLarge)
				r.Content[i] = llm.Text(text.Shorten(said, most*bytesPerToken)) + tooLarge
			}
		case llm.Media:
			if mediaTokens(p) > most {
				r.Content[i] = llm.Text("[An image or document was left out, because it does not " +
					"fit into your context.]")
			}
		}
		most = max(most-tokensOf(r.Content[i]), 0)
	}
	*place = r
}

// shortenNewest shortens the results that the model has not seen to a quarter if they are large,
// and reports whether they were.
func (c *lockedConversation) shortenNewest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	places := resultsOf(unanswered(c.known.messages))
	tokens := 0
	for _, place := range places {
		tokens += tokensOf(*place)
	}
	if tokens <= smallResults {
		return false
	}
	for _, place := range places {
		shortenResult(place, tokensOf(*place)/4)
	}
	return true
}

// count notes how many tokens the server has counted in the last request. It ignores a number that
// is much too small, which must count something else.
func (b *budget) count(tokens int) {
	if tokens > b.sent/4 {
		b.missed = tokens - b.sent
	}
}

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

// cutResults leaves out results of tools, oldest first, until that saves enough tokens or only the
// newest are left. If it can save less than least, it leaves out nothing.
func (b *budget) cutResults(messages []llm.Message, tokens, least int) {
	places := resultsOf(messages)
	kept := max(len(resultsOf(unanswered(messages))), keptResults)
	end, saved := 0, 0
	for ; end < len(places)-kept && saved < tokens; end++ {
		r := (*places[end]).(llm.ToolResult)
		saved += tokensOf(r) - tokensOf(withoutContent(r))
	}
	if saved < least {
		return
	}
	if b.excerpts == nil {
		b.excerpts = map[string]string{}
	}
	for _, place := range places[:end] {
		r := (*place).(llm.ToolResult)
		if b.excerpts[r.ID] == "" {
			b.excerpts[r.ID] = excerptOf(r)
			*place = withoutContent(r)
		}
	}
}

// withoutContent returns r without its content, or r itself if that saves nothing.
func withoutContent(r llm.ToolResult) llm.ToolResult {
	short := llm.ToolResult{ID: r.ID, Failed: r.Failed, Content: []llm.Part{llm.Text(leftOut)}}
	if tokensOf(r) <= tokensOf(short) {
		return r
	}
	return short
}

// excerptOf returns what a summary uses of a result.
func excerptOf(r llm.ToolResult) string {
	var texts []string
	for _, content := range r.Content {
		if said, ok := content.(llm.Text); ok {
			texts = append(texts, text.Shorten(string(said), maxTranscribed))
		}
	}
	return strings.Join(texts, "\n")
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
		case llm.Media:
			n += mediaTokens(p)
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

// mediaTokens returns about how many tokens an image or a document has.
func mediaTokens(m llm.Media) int {
	if m.MediaType == llm.PDF {
		return imageTokens + len(m.Data)/pdfBytesPerToken
	}
	return imageTokens
}

// transcribe returns messages as text, with long results shortened. Each text is indented, so that
// no text can imitate the words of another speaker.
func (b *budget) transcribe(messages []llm.Message) string {
	var all strings.Builder
	add := func(from, said string) {
		said = strings.ReplaceAll(text.Plain(said), "\n", "\n\t")
		fmt.Fprintf(&all, "%s:\n\t%s\n\n", from, said)
	}
	names := map[llm.Role]string{llm.User: "User", llm.Assistant: "Agent"}
	for _, m := range messages {
		for _, part := range m.Parts {
			switch p := part.(type) {
			case llm.Text:
				add(names[m.Role], string(p))
			case llm.Media:
				add("User", "(an image or document)")
			case llm.ToolCall:
				add("Agent calls "+p.Name, text.Shorten(p.Arguments, maxTranscribed))
			case llm.ToolResult:
				add("Result", cmp.Or(b.excerpts[p.ID], excerptOf(p)))
			}
		}
	}
	return all.String()
}

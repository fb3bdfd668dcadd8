package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
)

const (
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

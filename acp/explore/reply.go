package explore

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// chunkSize is the text that makes a chunk worth sending, in bytes.
const chunkSize = 1 << 10

// longestWait is how long found text is gathered before it is sent, as long as more is found.
const longestWait = 200 * time.Millisecond

// reply is what a turn sends. Text is gathered into chunks; tool calls keep their place among
// them. It is used by one goroutine at a time.
type reply struct {
	ctx     context.Context // the turn's: a reply lives no longer
	updates backend.Updates
	pending strings.Builder
	// bound is how many bytes of found text the answer takes, and room how many are left of it.
	bound, room int
	sent        time.Time // when text was last sent
}

func newReply(ctx context.Context, updates backend.Updates, bound int) *reply {
	return &reply{ctx: ctx, updates: updates, bound: bound, room: bound}
}

// write adds text that is not bounded by room, because it is short or has been bounded.
func (r *reply) write(s string) error {
	r.pending.WriteString(s)
	if r.pending.Len() < chunkSize {
		return nil
	}
	return r.flush()
}

// take reserves room for n bytes of found text. It reports false when there is not enough.
func (r *reply) take(n int) bool {
	if n > r.room {
		return false
	}
	r.room -= n
	return true
}

// flushNow sends the text that was gathered, unless some was sent a moment ago.
func (r *reply) flushNow() error {
	if time.Since(r.sent) < longestWait {
		return nil
	}
	return r.flush()
}

// flush sends the text that was gathered.
func (r *reply) flush() error {
	if r.pending.Len() == 0 {
		return nil
	}
	chunk := encode(textChunk{Kind: "agent_message_chunk", Content: text(r.pending.String())})
	r.pending.Reset()
	r.sent = time.Now()
	return r.updates.Update(r.ctx, chunk)
}

// tool is a tool call that was begun.
type tool struct {
	reply *reply
	id    string
}

// begin shows a tool call in progress. input is what the user asked for.
func (r *reply) begin(kind toolKind, title string, input any) (tool, error) {
	return r.announce(toolCall{Title: title, Tool: kind, Status: toolInProgress, RawInput: input})
}

// announce shows a tool call, whatever its status.
func (r *reply) announce(c toolCall) (tool, error) {
	if err := r.flush(); err != nil {
		return tool{}, err
	}
	// The id must be unlike any other of the session, also of those that an earlier process stored.
	t := tool{r, string(c.Tool) + "-" + rand.Text()}
	c.Kind, c.ID = "tool_call", t.id
	return t, r.updates.Update(r.ctx, encode(c))
}

// update shows what has become of the tool call.
func (t tool) update(c toolCall) error {
	if err := t.reply.flush(); err != nil {
		return err
	}
	c.Kind, c.ID = "tool_call_update", t.id
	return t.reply.updates.Update(t.reply.ctx, encode(c))
}

// end shows the tool call completed or failed, with a summary and the places that it came by.
func (t tool) end(status toolStatus, summary string, places []location) error {
	said := text(summary)
	return t.update(toolCall{Status: status, Locations: places, Content: []toolContent{{Type: "content", Content: &said}}})
}

// fail ends the tool call with a reason, and tells the user the same.
func (t tool) fail(reason string) error {
	if err := t.end(toolFailed, reason, nil); err != nil {
		return err
	}
	return t.reply.write(reason + "\n\n")
}

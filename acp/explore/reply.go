package explore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// chunkSize is how many bytes of text are collected before they are sent.
const chunkSize = 1 << 10

// reply sends what a turn says and does. Text is collected into chunks, each of which is whole
// Markdown, because some clients show each chunk as a document. Tool calls keep their position among
// them. It is used by one goroutine at a time.
type reply struct {
	ctx     context.Context // the turn's
	updates backend.Updates
	pending strings.Builder
	inBlock bool          // pending ends within a code block of writeLine
	bound   int           // how many bytes of found text the answer may contain
	room    int           // how many of these are left
	delay   time.Duration // how long lines may wait in flushSoon
	sent    time.Time     // when text was last sent
}

func newReply(ctx context.Context, updates backend.Updates, l limits) *reply {
	return &reply{ctx: ctx, updates: updates, bound: l.bytes, room: l.bytes, delay: l.delay,
		sent: time.Now()}
}

// write adds whole Markdown that is short, or for which room has been taken.
func (r *reply) write(s string) error {
	r.endBlock()
	r.pending.WriteString(s)
	if r.pending.Len() < chunkSize {
		return nil
	}
	return r.flush()
}

// writeLine adds a line, which must not begin like a fence, to a code block that other text ends.
func (r *reply) writeLine(line string) {
	if !r.inBlock {
		r.pending.WriteString("```text\n")
		r.inBlock = true
	}
	r.pending.WriteString(line + "\n")
}

func (r *reply) endBlock() {
	if r.inBlock {
		r.pending.WriteString("```\n\n")
		r.inBlock = false
	}
}

// take reserves room for n bytes of found text. It reports whether there is enough.
func (r *reply) take(n int) bool {
	if n > r.room {
		return false
	}
	r.room -= n
	return true
}

// flushSoon sends the collected text, unless some was sent a moment ago.
func (r *reply) flushSoon() error {
	if time.Since(r.sent) < r.delay {
		return nil
	}
	return r.flush()
}

// flush sends the collected text.
func (r *reply) flush() error {
	r.endBlock()
	if r.pending.Len() == 0 {
		return nil
	}
	chunk := backend.Text(r.pending.String())
	r.pending.Reset()
	r.sent = time.Now()
	return r.updates.Update(r.ctx, chunk)
}

// writeBlock writes s as a code block.
func (r *reply) writeBlock(s string) error { return r.write(text.Block("text", s) + "\n") }

// quote writes text from a folder or server as a code block, as far as there is room. The caller
// names the source.
func (r *reply) quote(s string) error {
	s = text.Plain(s)
	if strings.TrimSpace(s) == "" {
		return r.write("It is empty.\n\n")
	}
	size := len(s)
	if !r.take(size) {
		s = text.Prefix(s, r.room)
		r.room = 0
	}
	if s != "" {
		if err := r.writeBlock(s); err != nil {
			return err
		}
	}
	if len(s) == size {
		return nil
	}
	return r.write(
		fmt.Sprintf("Truncated: this text is %s long; the limit for an answer is %s.\n\n",
			text.Size(size), text.Size(r.bound)))
}

// quoteAtMost is quote for at most max bytes.
func (r *reply) quoteAtMost(max int, s string) error {
	others := r.room - min(r.room, max)
	r.room -= others
	defer func() { r.room += others }()
	return r.quote(s)
}

// activeCall is a tool call that was announced.
type activeCall struct {
	reply *reply
	id    sdk.ToolCallId
}

// begin announces a tool call in progress. input holds the user's arguments.
func (r *reply) begin(kind sdk.ToolKind, title string, input any) (activeCall, error) {
	return r.announce(backend.ToolCall{ToolCallUpdate: sdk.ToolCallUpdate{
		Title: &title, Kind: &kind, Status: sdk.Ptr(sdk.ToolCallStatusInProgress), RawInput: input,
	}})
}

// announce announces a tool call.
func (r *reply) announce(c backend.ToolCall) (activeCall, error) {
	if err := r.flush(); err != nil {
		return activeCall{}, err
	}
	// The id must differ from all others of the session, including those stored by earlier
	// processes.
	call := activeCall{r, sdk.ToolCallId(string(*c.Kind) + "-" + rand.Text())}
	c.SessionUpdate, c.ToolCallId = sessionstore.ToolCall, call.id
	return call, r.updates.Update(r.ctx, backend.NewUpdate(c))
}

// update reports progress of the tool call.
func (a activeCall) update(c backend.ToolCall) error { return a.send(c, a.reply.updates.Update) }

// commit is update, but stores the progress first. It is for calls that change something.
func (a activeCall) commit(c backend.ToolCall) error { return a.send(c, a.reply.updates.Commit) }

func (a activeCall) send(
	c backend.ToolCall, send func(context.Context, backend.Update) error,
) error {
	if err := a.reply.flush(); err != nil {
		return err
	}
	c.SessionUpdate, c.ToolCallId = sessionstore.ToolCallUpdate, a.id
	return send(a.reply.ctx, backend.NewUpdate(c))
}

// progress replaces what the tool call shows.
func (a activeCall) progress(message string) error {
	return a.update(backend.ToolCall{Content: []any{sdk.ToolContent(sdk.TextBlock(message))}})
}

// end ends the tool call with a summary and the locations it concerned.
func (a activeCall) end(
	status sdk.ToolCallStatus, summary string, locations []sdk.ToolCallLocation,
) error {
	return a.update(backend.ToolCall{
		ToolCallUpdate: sdk.ToolCallUpdate{Status: &status, Locations: locations},
		Content:        []any{sdk.ToolContent(sdk.TextBlock(summary))},
	})
}

// fail ends the tool call with a reason, and tells the user the same.
func (a activeCall) fail(reason string) error {
	if err := a.end(sdk.ToolCallStatusFailed, reason, nil); err != nil {
		return err
	}
	return a.reply.write(reason + "\n\n")
}

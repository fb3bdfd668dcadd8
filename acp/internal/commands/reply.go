package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
)

// MaxBytes is the maximum size of the found text in an answer that has no other limit.
const MaxBytes = 64 << 10

// chunkSize is how many bytes of text are collected before they are sent.
const chunkSize = 1 << 10

// Reply sends what a turn says and does. Text is collected into chunks, each of which is whole
// Markdown, because some clients show each chunk as a document. Tool calls keep their position
// among them. It is used by one goroutine at a time.
type Reply struct {
	Updates backend.Updates
	Bound   int // how many bytes of found text the answer may contain
	Room    int // how many of these are left

	ctx     context.Context // the turn's
	pending strings.Builder
	failed  bool // the command could not be carried out
}

// NewReply returns an empty reply. bound limits its found text, in bytes.
func NewReply(ctx context.Context, updates backend.Updates, bound int) *Reply {
	return &Reply{ctx: ctx, Updates: updates, Bound: bound, Room: bound}
}

// Finish sends what is left of an answer that ended with err, and returns the result of the
// prompt.
func (r *Reply) Finish(err error) (backend.Raw, error) {
	if err == nil {
		err = r.Flush()
	}
	switch {
	case r.ctx.Err() != nil, errors.Is(err, backend.ErrCancelled):
		return backend.Stopped(sdk.StopReasonCancelled), nil
	case err != nil:
		return nil, err
	case r.failed:
		return backend.FailedTurn(), nil
	default:
		return backend.Stopped(sdk.StopReasonEndTurn), nil
	}
}

// Refuse adds why a command cannot be carried out. The turn counts as failed.
func (r *Reply) Refuse(s string) error {
	r.failed = true
	return r.Write(s)
}

// Write adds whole Markdown that is short, or for which room has been taken.
func (r *Reply) Write(s string) error {
	r.pending.WriteString(s)
	if r.pending.Len() < chunkSize {
		return nil
	}
	return r.Flush()
}

// Take reserves room for n bytes of found text. It reports whether there is enough.
func (r *Reply) Take(n int) bool {
	if n > r.Room {
		return false
	}
	r.Room -= n
	return true
}

// Flush sends the collected text.
func (r *Reply) Flush() error {
	if r.pending.Len() == 0 {
		return nil
	}
	chunk := backend.Text(r.pending.String())
	r.pending.Reset()
	return r.Updates.Update(r.ctx, chunk)
}

// WriteBlock writes s as a code block.
func (r *Reply) WriteBlock(s string) error { return r.Write(text.Block("text", s) + "\n") }

// Quote writes text from a folder or server as a code block, as far as there is room. The caller
// names the source.
func (r *Reply) Quote(s string) error {
	s = text.Plain(s)
	if strings.TrimSpace(s) == "" {
		return r.Write("It is empty.\n\n")
	}
	size := len(s)
	if !r.Take(size) {
		s = text.Prefix(s, r.Room)
		r.Room = 0
	}
	if s != "" {
		if err := r.WriteBlock(s); err != nil {
			return err
		}
	}
	if len(s) == size {
		return nil
	}
	return r.Write(
		fmt.Sprintf("Truncated: this text is %s long; the limit for an answer is %s.\n\n",
			text.Size(size), text.Size(r.Bound)))
}

// quoteAtMost is quote for at most max bytes.
func (r *Reply) quoteAtMost(max int, s string) error {
	others := r.Room - min(r.Room, max)
	r.Room -= others
	defer func() { r.Room += others }()
	return r.Quote(s)
}

// Begin shows a tool call in progress. input holds the user's arguments.
func (r *Reply) Begin(kind sdk.ToolKind, title string, input any) (backend.ShownCall, error) {
	if err := r.Flush(); err != nil {
		return backend.ShownCall{}, err
	}
	call := backend.NewToolCall(string(kind), kind, title, "")
	call.Status, call.RawInput = sdk.Ptr(sdk.ToolCallStatusInProgress), input
	return backend.ShowCall(r.ctx, r.Updates, call)
}

// Fail ends a tool call with a reason, and tells the user the same.
func (r *Reply) Fail(call backend.ShownCall, reason string) error {
	content := backend.TextContent(reason)
	if err := call.ShowStatus(r.ctx, sdk.ToolCallStatusFailed, content); err != nil {
		return err
	}
	return r.Refuse(reason + "\n\n")
}

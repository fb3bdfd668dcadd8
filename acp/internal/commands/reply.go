package commands

import (
	"context"
	"encoding/json"
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
// among them. It is used by one goroutine at a time. After an error it sends nothing more, and its
// methods return that error, so that those who only write need not look at it.
type Reply struct {
	Updates backend.Updates

	bound int // how many bytes of found text the answer may contain
	room  int // how many of these are left

	ctx     context.Context // the turn's
	pending strings.Builder
	failed  bool  // the command could not be carried out
	err     error // of the first update that could not be sent
}

// NewReply returns an empty reply. bound limits its found text, in bytes.
func NewReply(ctx context.Context, updates backend.Updates, bound int) *Reply {
	return &Reply{ctx: ctx, Updates: updates, bound: bound, room: bound}
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

// Write adds whole Markdown of limited length.
func (r *Reply) Write(s string) error {
	r.pending.WriteString(s)
	if r.pending.Len() < chunkSize {
		return r.err
	}
	return r.Flush()
}

// Flush sends the collected text.
func (r *Reply) Flush() error {
	if r.err == nil && r.pending.Len() > 0 {
		r.err = r.Updates.Update(r.ctx, backend.Text(r.pending.String()))
	}
	r.pending.Reset()
	return r.err
}

// Quote writes text from a folder or server as a code block, as far as there is room. The caller
// names the source.
func (r *Reply) Quote(s string) error { return r.quoteAtMost(r.room, s) }

// quoteAtMost is Quote for at most max bytes.
func (r *Reply) quoteAtMost(max int, s string) error {
	s = text.Plain(s)
	if strings.TrimSpace(s) == "" {
		return r.Write("It is empty.\n\n")
	}
	shown := text.Prefix(s, min(max, r.room))
	r.room -= len(shown)
	if shown != "" {
		r.Write(text.Block("text", shown) + "\n")
	}
	if shown == s {
		return r.err
	}
	return r.Write(
		fmt.Sprintf("Truncated: this text is %s long; the limit for an answer is %s.\n\n",
			text.Size(len(s)), text.Size(r.bound)))
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

// ShowResult shows a result after a text that says where it comes from.
func (r *Reply) ShowResult(intro string, result backend.ToolResult) error {
	if len(result.Content) == 0 && len(result.Structured) == 0 {
		return r.Write(intro + " without content.\n")
	}
	r.Write(intro + ":\n\n")
	for _, raw := range result.Content {
		r.showBlock(raw)
	}
	if len(result.Structured) > 0 {
		r.Quote(string(result.Structured))
	}
	if result.Cut != "" {
		return r.Write("Truncated: " + result.Cut + ".\n")
	}
	return nil
}

// showBlock shows a content block: text quoted, and a description of anything else.
func (r *Reply) showBlock(raw backend.Raw) {
	var b struct {
		Type, URI, MIMEType string
		Text                *string
		Resource            struct {
			URI, MIMEType string
			Text          *string
		}
	}
	var quoted *string
	var described string
	name := func(s string) string { return text.Code(text.Truncate(s, maxDescription)) }
	switch err := json.Unmarshal(raw, &b); {
	case err != nil:
		described = fmt.Sprintf("An invalid block of %s.", text.Size(len(raw)))
	case b.Type == "text":
		quoted = b.Text
	case b.Type == "resource":
		quoted = b.Resource.Text
		described = "The resource " + name(b.Resource.URI)
		if b.Resource.MIMEType != "" {
			described += ", of type " + name(b.Resource.MIMEType)
		}
		if quoted != nil {
			described += ":"
		} else {
			described += fmt.Sprintf(", is not text: it is a block of %s.",
				text.Size(backend.BlockSize(raw)))
		}
	case b.Type == "resource_link":
		described = fmt.Sprintf("A link to %s.", name(b.URI))
	default:
		described = "A block of type " + name(b.Type)
		if b.MIMEType != "" {
			described += " (" + name(b.MIMEType) + ")"
		}
		described += fmt.Sprintf(" of %s.", text.Size(backend.BlockSize(raw)))
	}
	if described != "" {
		r.Write(described + "\n\n")
	}
	if quoted != nil {
		r.Quote(*quoted)
	}
}

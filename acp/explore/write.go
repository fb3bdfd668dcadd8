package explore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/filechange"
	"github.com/acp-agent/acp-agent/internal/policy"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

const (
	writeUsage = "Give the path after the command, and the content of the file on the lines " +
		"below, or in a code block if it has empty lines:\n\n```text\n/write PATH\ncontent\n```\n"
	oneBlockUsage = "To change a file, send the command and its lines as one text, without links " +
		"or other blocks.\n"
)

// writeFile answers /write.
func (t *commandTurn) writeFile(ctx context.Context, p prompt) error {
	switch {
	case p.blocks > 1:
		return t.Write(oneBlockUsage)
	case p.line == "" || p.body == "":
		return t.Write(writeUsage)
	}
	content := p.body
	if block, rest, ok := text.CutBlock(content); ok && strings.TrimSpace(rest) == "" {
		content = block
	}
	if !strings.HasSuffix(content, "\n") {
		content += "\n" // most editors strip the last one from a prompt
	}
	return t.change(ctx, change{verb: "Write"}, p.line, func(*string) (string, error) {
		return content, nil
	})
}

// change is a planned change of a file.
type change struct {
	verb string // "Write" or "Edit"
	tools.Change
}

// change shows the new text that rewrite returns for a file, asks whether to write it, and writes
// it if the path and the file are still the same. Files outside the roots are rejected without
// asking.
func (t *commandTurn) change(
	ctx context.Context, c change, path string, rewrite func(old *string) (string, error),
) error {
	var refused error
	ws := t.workspace().Checked(policy.Confirmed) // the change is shown and asked about
	c.Change, refused = tools.Plan(ctx, ws, path, t.limits.fileSize, rewrite)
	if refused == nil {
		refused = ws.Check(c.Access())
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refused == nil && len(c.Parents) > 0 { // a mistyped path
		refused = fs.ErrNotExist
	}
	if errors.Is(refused, workspace.ErrClosed) {
		return refused
	}
	call, err := t.Announce(c.toolCall())
	if err != nil {
		return err
	}
	switch {
	case refused != nil:
		return call.Fail(t.whyUnchanged(c, refused))
	case c.Unchanged():
		summary := text.Code(t.show(c.Ref)) + " already has this content."
		if err := call.End(sdk.ToolCallStatusCompleted, summary, c.shown().Locations); err != nil {
			return err
		}
		return t.Write(summary + "\n\n")
	}
	switch err := t.confirm(ctx, c, call); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, backend.ErrCancelled):
		return errors.Join(err, call.End(sdk.ToolCallStatusFailed,
			"Nothing was written: the request was cancelled.", nil))
	case errors.Is(err, backend.ErrRejected):
		return call.Fail("Nothing was written: the change of " + text.Code(t.show(c.Ref)) +
			" was not allowed.")
	case err != nil:
		return call.Fail("Nothing was written: " + err.Error() + ".")
	}
	return t.apply(ctx, c, call)
}

// apply writes a change that was allowed.
func (t *commandTurn) apply(ctx context.Context, c change, call commands.ShownCall) error {
	begun := backend.ToolCall{Content: c.shown().Content}
	begun.Status = sdk.Ptr(sdk.ToolCallStatusInProgress)
	if err := call.Commit(begun); err != nil {
		return err
	}
	var err error
	ws := t.workspace().Checked(policy.Confirmed)
	if c.Change, err = c.Apply(ctx, ws); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return call.Fail(t.whyUnchanged(c, err))
	}
	made := c.shown()
	made.Title, made.Status = nil, sdk.Ptr(sdk.ToolCallStatusCompleted)
	if err := call.Commit(made); err != nil {
		return err
	}
	n := strings.Count(c.New, "\n")
	if c.New != "" && !strings.HasSuffix(c.New, "\n") {
		n++
	}
	if err := t.Write("Wrote " + text.Code(t.show(c.Ref)) + ", " + text.Count(n, "line", "lines") +
		".\n\n"); err != nil {
		return err
	}
	return t.mentionInstructions(ctx, c.Ref)
}

// confirm shows the change and asks whether to make it, as [backend.Question.Ask] does.
func (t *commandTurn) confirm(ctx context.Context, c change, call commands.ShownCall) error {
	shown := c.toolCall()
	shown.ToolCallId, shown.Content = call.ID, c.shown().Content
	_, err := backend.Question{
		ToolCall: backend.Encode(shown), Once: "Allow", Reject: "Reject",
	}.Ask(ctx, t.host)
	return err
}

// shown returns the change as the user sees it. The resolved path must be known.
func (c change) shown() backend.ToolCall { return filechange.Describe(c.Change, c.verb) }

// toolCall describes the change before it is made. It names the resolved path and its root, if
// these are known.
func (c change) toolCall() backend.ToolCall {
	title := c.verb + " " + text.Truncate(text.Printable(c.Asked), 200)
	input := map[string]any{"path": c.Asked}
	call := backend.ToolCall{}
	call.Title = &title
	if c.Ref != (workspace.Ref{}) {
		call = c.shown()
		call.Content = nil
		input["resolvedPath"], input["root"] = c.Ref.Path(), c.Ref.Root().Dir.String()
	}
	call.Kind, call.Status = sdk.Ptr(sdk.ToolKindEdit), sdk.Ptr(sdk.ToolCallStatusPending)
	call.RawInput = input
	return call
}

// whyUnchanged says why nothing was written.
func (t *commandTurn) whyUnchanged(c change, err error) string {
	name := text.Code(c.Asked)
	if why := refusal(name, err); why != "" {
		return why
	}
	var moved *workspace.MovedError
	var changed *workspace.ChangedError
	var notText *workspace.NotTextError
	var large *workspace.TooLargeError
	var match *tools.MatchError
	switch {
	case errors.As(err, &moved):
		return fmt.Sprintf("Nothing was written: %s leads to %s now; it led to %s.", name,
			text.Code(moved.Now.Path()), text.Code(moved.Was.Path()))
	case errors.As(err, &changed), errors.Is(err, fs.ErrExist):
		return "Nothing was written: " + name + " has changed since it was shown. Try again."
	case errors.As(err, &match) && match.Count == 0:
		return name + " does not contain the old text, exactly as it was given. Use `/read` to see it."
	case errors.As(err, &match):
		return fmt.Sprintf("%s contains the old text %d times, first on lines %d and %d. Include "+
			"more of the text around it.",
			name, match.Count, match.Lines[0], match.Lines[1])
	case errors.Is(err, fs.ErrNotExist) && c.verb == "Edit":
		return "There is no file " + name + "." + t.suggest("/edit", c.Asked)
	case errors.Is(err, fs.ErrNotExist):
		return "There is no directory for " + name + ": create it first. A relative path starts at " +
			text.Code(t.roots[0].Label) + "."
	case errors.Is(err, syscall.EISDIR):
		return name + " is a directory."
	case errors.As(err, &notText):
		return name + " is not a text file."
	case errors.As(err, &large):
		return fmt.Sprintf("%s is too large: the limit is %s.", name, text.Size(t.limits.fileSize))
	default:
		return "Cannot change " + name + ": " + reason(err) + "."
	}
}

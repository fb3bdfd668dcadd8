package explore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// writeFile answers /write.
func (t *turn) writeFile(ctx context.Context, p prompt) error {
	switch {
	case p.blocks > 1:
		return t.write(aloneText)
	case p.line == "" || p.body == "":
		return t.write("Give the path behind the command, and the content of the file on the lines below:\n\n" + writeForm)
	}
	content := p.body
	if !strings.HasSuffix(content, "\n") {
		content += "\n" // most editors take the last one off a prompt
	}
	return t.change(ctx, "write", p.line, func(*string) (string, error) { return content, nil })
}

// editFile answers /edit.
func (t *turn) editFile(ctx context.Context, p prompt) error {
	if p.blocks > 1 {
		return t.write(aloneText)
	}
	e, err := parseEdit(p.body)
	switch {
	case p.line == "" || p.body == "":
		return t.write("Give the path behind the command, and on the lines below what to replace:\n\n" + editForm)
	case err != nil:
		return t.write("This cannot be read as an edit: " + err.Error() + ".\n\n" + editForm)
	}
	return t.change(ctx, "edit", p.line, func(old *string) (string, error) {
		if old == nil {
			return "", fs.ErrNotExist
		}
		return e.apply(*old)
	})
}

const (
	writeForm = "```text\n/write PATH\nthe lines of the file\n```\n"
	aloneText = "To change a file, send the command and its lines as one text, without links or other blocks.\n"
)

// change is what is to become of a file, as it is shown before it is made.
type change struct {
	command string
	tools.Change
}

// change makes what the user asked for if they allow it. Nothing is asked that is not in scope, and what
// was shown is what is written, or nothing is (C11).
func (t *turn) change(ctx context.Context, command, path string, rewrite func(old *string) (string, error)) error {
	planned, refused := tools.Plan(ctx, t.workspace(), path, t.options.MaxFileSize, rewrite)
	c := change{command, planned}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(refused, workspace.ErrClosed) {
		return refused
	}
	call, err := t.announce(c.toolCall())
	if err != nil {
		return err
	}
	switch {
	case refused != nil:
		return call.fail(t.whyUnchanged(c, refused))
	case c.Unchanged():
		said := code(t.name(c.Ref)) + " is like that already."
		if err := call.end(toolCompleted, said, c.places()); err != nil {
			return err
		}
		return t.write(said + "\n\n")
	}
	return t.proceed(ctx, c, call)
}

// proceed asks, and writes.
func (t *turn) proceed(ctx context.Context, c change, call tool) error {
	answer, err := t.ask(ctx, c, call)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return call.fail("Nothing was written: " + err.Error() + ".")
	case answer == backend.Cancelled:
		return errors.Join(backend.ErrCancelled, call.end(toolFailed, "Nothing was written: the question was cancelled.", nil))
	case answer != backend.AllowOnce:
		return call.fail("Nothing was written: " + code(t.name(c.Ref)) + " was not allowed to be changed.")
	}
	if err := call.update(toolCall{Status: toolInProgress}); err != nil {
		return err
	}
	if err := c.Apply(ctx, t.workspace()); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return call.fail(t.whyUnchanged(c, err))
	}
	if err := call.update(toolCall{Status: toolCompleted, Locations: c.places(), Content: c.diff()}); err != nil {
		return err
	}
	return t.write("Wrote " + code(t.name(c.Ref)) + ", " + count(countLines(c.New), "line", "lines") + ".\n\n")
}

// whyUnchanged says why nothing was written.
func (t *turn) whyUnchanged(c change, err error) string {
	name := code(c.Asked)
	if why := refusal(name, err); why != "" {
		return why
	}
	var moved *workspace.MovedError
	var changed *workspace.ChangedError
	var no *workspace.NotTextError
	var large *workspace.TooLargeError
	switch {
	case errors.As(err, &moved):
		return fmt.Sprintf("Nothing was written: %s leads to %s now, and led to %s.", name, code(moved.Now.Path()), code(moved.Was.Path()))
	case errors.As(err, &changed), errors.Is(err, fs.ErrExist):
		return "Nothing was written: " + name + " has changed since it was shown. Ask once more."
	case errors.Is(err, fs.ErrNotExist) && c.command == "edit":
		return "There is no file " + name + "." + t.elsewhere("/edit", c.Asked)
	case errors.Is(err, fs.ErrNotExist):
		return "There is no directory for " + name + ". A relative path starts at " + code(t.roots[0].label) + "."
	case errors.Is(err, syscall.EISDIR):
		return name + " is a directory."
	case errors.As(err, &no):
		return name + " is not text."
	case errors.As(err, &large):
		return fmt.Sprintf("%s is too large: a file of at most %s is written here.", name, size(t.options.MaxFileSize))
	default:
		return name + " cannot be changed: " + reason(err) + "."
	}
}

func countLines(text string) (n int) {
	for range strings.Lines(text) {
		n++
	}
	return n
}

func (t *turn) name(ref workspace.Ref) string { return t.roots[ref.Root().Index].show(ref.Rel()) }

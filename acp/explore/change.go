package explore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
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
	return t.change(ctx, change{command: "write", asked: p.line}, func(*string) (string, error) { return content, nil })
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
	return t.change(ctx, change{command: "edit", asked: p.line}, func(old *string) (string, error) {
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
	asked   string // the path
	ref     workspace.Ref
	old     *string // nil if there is no file
	new     string
}

// change makes what the user asked for if they allow it. Nothing is asked that is not in scope, and what
// was shown is what is written, or nothing is (C11).
func (t *turn) change(ctx context.Context, c change, rewrite func(old *string) (string, error)) error {
	refused := t.plan(ctx, &c, rewrite)
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
	case c.old != nil && *c.old == c.new:
		said := code(t.name(c.ref)) + " is like that already."
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
		return call.fail("Nothing was written: the client could not be asked for permission: " + err.Error() + ".")
	case answer == permissionCancelled:
		return errors.Join(errCancelled, call.end(toolFailed, "Nothing was written: the question was cancelled.", nil))
	case answer != permissionAllowed:
		return call.fail("Nothing was written: " + code(t.name(c.ref)) + " was not allowed to be changed.")
	}
	if err := call.update(toolCall{Status: toolInProgress}); err != nil {
		return err
	}
	if err := c.write(ctx, t.workspace()); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return call.fail(t.whyUnchanged(c, err))
	}
	if err := call.update(toolCall{Status: toolCompleted, Locations: c.places(), Content: c.diff()}); err != nil {
		return err
	}
	return t.write("Wrote " + code(t.name(c.ref)) + ", " + count(countLines(c.new), "line", "lines") + ".\n\n")
}

// plan finds out where the path leads, what is there, and what shall be.
func (t *turn) plan(ctx context.Context, c *change, rewrite func(old *string) (string, error)) error {
	ref, err := t.workspace().WriteTarget(c.asked)
	if err != nil {
		return err
	}
	if !validPath(ref.Path()) {
		return errUnshowable
	}
	c.ref = ref
	if c.old, err = t.current(ctx, c.asked, ref); err != nil {
		return err
	}
	if c.new, err = rewrite(c.old); err != nil {
		return err
	}
	if int64(len(c.new)) > t.options.MaxFileSize {
		return errLarge
	}
	return nil
}

// current is the text of the file at path, which must be at ref; nil if there is none.
func (t *turn) current(ctx context.Context, path string, ref workspace.Ref) (*string, error) {
	file, err := t.workspace().Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if file.Ref() != ref {
		return nil, &workspace.MovedError{Path: path, Was: ref, Now: file.Ref()}
	}
	content, err := readText(ctx, file, t.options.MaxFileSize, nil)
	if err != nil {
		return nil, err
	}
	text := string(content)
	return &text, nil
}

// write makes the change, if everything is as it was shown.
func (c change) write(ctx context.Context, ws *workspace.Workspace) error {
	o := workspace.WriteOptions{At: c.ref, Create: workspace.CreateOnly}
	if c.old != nil {
		o.Create, o.IfUnchanged = workspace.ReplaceOnly, workspace.VersionOf([]byte(*c.old))
	}
	_, err := ws.WriteFile(ctx, c.asked, []byte(c.new), o)
	return err
}

var errUnshowable = errors.New("its name is not Unicode text, and cannot be shown")

// whyUnchanged says why nothing was written.
func (t *turn) whyUnchanged(c change, err error) string {
	name := code(c.asked)
	if why := refusal(name, err); why != "" {
		return why
	}
	var moved *workspace.MovedError
	var changed *workspace.ChangedError
	switch {
	case errors.As(err, &moved):
		return fmt.Sprintf("Nothing was written: %s leads to %s now, and led to %s.", name, code(moved.Now.Path()), code(moved.Was.Path()))
	case errors.As(err, &changed), errors.Is(err, fs.ErrExist):
		return "Nothing was written: " + name + " has changed since it was shown. Ask once more."
	case errors.Is(err, fs.ErrNotExist) && c.command == "edit":
		return "There is no file " + name + "." + t.elsewhere("/edit", c.asked)
	case errors.Is(err, fs.ErrNotExist):
		return "There is no directory for " + name + ". A relative path starts at " + code(t.roots[0].label) + "."
	case errors.Is(err, syscall.EISDIR):
		return name + " is a directory."
	case errors.Is(err, errBinary):
		return name + " is not text."
	case errors.Is(err, errLarge):
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

package explore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// read answers /read, and a prompt that consists of links.
func (t *commandTurn) read(ctx context.Context, p prompt) error {
	wanted := p.links
	if p.text != "" {
		wanted = append([]link{t.readArgument(p.text)}, wanted...)
	}
	if len(wanted) == 0 {
		return t.Refuse("Give a path: " + text.Code("/read PATH[:FIRST-LAST]") + ", for example " +
			text.Code("/read main.go:1-20") + ".\n")
	}
	for _, l := range wanted {
		if err := t.readFile(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// readArgument parses the argument of /read. A file whose name ends like a range of lines takes
// precedence.
func (t *commandTurn) readArgument(argument string) link {
	path, lines, ok := splitLines(argument)
	if !ok {
		return link{path: argument}
	}
	if _, err := t.workspace().Stat(argument); err == nil {
		return link{path: argument}
	}
	return link{path, lines}
}

// readFile shows a file.
func (t *commandTurn) readFile(ctx context.Context, l link) error {
	title := "Read " + text.Truncate(l.path, 200)
	input := map[string]any{"path": l.path}
	if !l.lines.whole() {
		title += ":" + l.lines.String()
		input["lines"] = l.lines.String()
	}
	call, err := t.Begin(sdk.ToolKindRead, title, input)
	if err != nil {
		return err
	}
	file, err := t.open(ctx, l.path, call)
	if err != nil {
		if errors.Is(err, workspace.ErrClosed) {
			return err
		}
		return call.Fail(t.whyUnreadable(l.path, err))
	}
	defer file.Close()
	ref := file.Ref()
	name := text.Code(t.show(ref))
	read := workspace.Text{First: max(l.lines.first, 1), Cut: workspace.CutByBytes}
	stored := ""
	if t.Room > 0 {
		read, stored, err = tools.ReadText(ctx, file, t.limits.fileSize, l.lines.options(t.Room))
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*workspace.NotTextError)):
		return call.Fail(name + " is not a text file.")
	case err != nil:
		return call.Fail("Cannot read " + name + ": " + reason(err) + ".")
	}
	summary := summarize(name, read)
	if stored != "" {
		summary += " It is " + stored + " text."
	}
	first, next := 0, read.First
	if read.Content != "" {
		first, next = read.First, read.Next()
	}
	if isTruncated(read) {
		summary += fmt.Sprintf(" Truncated: an answer is limited to %s. Continue with %s.",
			text.Size(t.Bound), text.Code(fmt.Sprintf("/read %s:%d-", ref.Path(), next)))
	}
	if read.Content != "" {
		t.Take(len(read.Content))
		if err := t.WriteBlock(read.Content); err != nil {
			return err
		}
	}
	if err := call.End(sdk.ToolCallStatusCompleted, summary,
		backend.Locations(ref.Path(), first)); err != nil {
		return err
	}
	if err := t.Write(summary + "\n\n"); err != nil {
		return err
	}
	return t.mentionInstructions(ctx, ref)
}

// open opens a file, and asks the user first if a rule says so.
func (t *commandTurn) open(
	ctx context.Context, path string, call commands.ShownCall,
) (*workspace.File, error) {
	ws := t.workspace().Checked(func(a workspace.Access, before error) error {
		rule, asks := permission.Asks(before)
		if !asks {
			return before
		}
		shown := backend.ToolCall{ToolCallUpdate: sdk.ToolCallUpdate{ToolCallId: call.ID,
			Title: sdk.Ptr("Read " + text.Argument(a.At.Path())), Kind: sdk.Ptr(sdk.ToolKindRead),
			Locations: backend.Locations(a.At.Path(), 0)}}
		_, err := t.host.Ask(ctx, backend.Question{Call: shown, Once: "Allow", Reject: "Reject",
			Action: rule.Action})
		return err
	})
	return ws.Open(path)
}

// options returns the options for reading the lines, up to room bytes, which must not be 0.
func (l lines) options(room int) workspace.TextOptions {
	o := workspace.TextOptions{First: max(l.first, 1), MaxLines: maxLines, MaxBytes: room,
		MaxWhole: 1}
	if l.last > 0 {
		o.MaxLines = l.last - o.First + 1
	}
	return o
}

// isTruncated reports whether not all requested lines fit into the answer.
func isTruncated(t workspace.Text) bool {
	return t.Cut == workspace.CutByBytes || t.Cut == workspace.CutInLine
}

// summarize returns a summary of what was read of the file called name.
func summarize(name string, t workspace.Text) string {
	last := t.First + t.Lines - 1
	switch {
	case t.Content == "" && isTruncated(t):
		return fmt.Sprintf("%s is not shown.", name)
	case t.Content == "" && t.Total <= 0:
		return fmt.Sprintf("%s is empty.", name)
	case t.Content == "":
		return fmt.Sprintf("%s has only %s.", name, text.Count(t.Total, "line", "lines"))
	case t.Cut == workspace.NotCut && t.First == 1 && last == t.Total:
		return fmt.Sprintf("%s, %s.", name, text.Count(t.Total, "line", "lines"))
	}
	of := ""
	if t.Cut == workspace.NotCut && t.Total > 0 {
		of = fmt.Sprintf(" of %d", t.Total)
	}
	if t.First == last {
		return fmt.Sprintf("%s, line %d%s.", name, last, of)
	}
	return fmt.Sprintf("%s, lines %d to %d%s.", name, t.First, last, of)
}

// whyUnreadable returns why a path cannot be read, with a suggestion if there is one.
func (t *commandTurn) whyUnreadable(path string, err error) string {
	name := text.Code(text.Truncate(path, 200))
	if why := refusal(name, err); why != "" {
		return why
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "There is no file " + name + "." + t.suggest("/read", path)
	case errors.Is(err, syscall.EISDIR):
		return name + " is a directory. Use " + text.Code("/find") + " to list files."
	default:
		return "Cannot read " + name + ": " + reason(err) + "."
	}
}

// show returns how answers write a path in the workspace.
func (s *explorerSession) show(ref workspace.Ref) string {
	return s.roots[ref.Root().Index].Show(ref.Rel())
}

// suggest returns a hint for a path that does not exist.
func (t *commandTurn) suggest(command, path string) string {
	if other := tools.LookAlike(t.workspace(), path); other != "" {
		return " There is " + text.Code(other) + ", whose name looks like it."
	}
	for candidate, info := range tools.Elsewhere(t.workspace(), path) {
		if info.Mode().IsRegular() {
			return fmt.Sprintf(" A relative path starts at %s. Did you mean %s?",
				text.Code(t.roots[0].Label), text.Code(command+" "+candidate))
		}
	}
	return " `/find` finds files by name."
}

// refusal returns why the workspace refuses a path, or "" if err has another cause.
func refusal(name string, err error) string {
	var outside *workspace.OutsideError
	var special *workspace.SpecialFileError
	var denied *workspace.DeniedError
	var replaced *workspace.ReplacedError
	var refused *workspace.RefusedError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("%s is refused: %s.", name, refused.Why)
	case errors.As(err, &replaced):
		return fmt.Sprintf("%s cannot be used: the folder %s was replaced after the session "+
			"started. Load the session again.", name, text.Code(replaced.Dir.String()))
	case errors.As(err, &outside):
		return fmt.Sprintf("%s is outside the session's folders: %s. `/roots add DIR` adds a "+
			"folder.", name, outside.Why)
	case errors.As(err, &denied):
		return fmt.Sprintf("%s is refused by policy: %s is denied.", name,
			text.Code(denied.By.String()))
	case errors.As(err, &special):
		return fmt.Sprintf("%s is a %s, not a regular file.", name, special.Kind)
	default:
		return ""
	}
}

// reason returns why something could not be opened, without the path.
func reason(err error) string {
	var outside *workspace.OutsideError
	var limit *workspace.LimitError
	var path *fs.PathError
	switch {
	case errors.As(err, &outside):
		return outside.Why
	case errors.As(err, &limit):
		return fmt.Sprintf("more than %d %s", limit.Limit, limit.What)
	case errors.As(err, &path):
		return path.Err.Error()
	default:
		return err.Error()
	}
}

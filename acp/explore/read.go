package explore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// read answers /read, and a prompt that consists of links.
func (t *turn) read(ctx context.Context, p prompt) error {
	wanted := p.links
	if p.text != "" {
		wanted = append([]link{t.readArgument(p.text)}, wanted...)
	}
	if len(wanted) == 0 {
		return t.Write("Give a path: " + text.Code("/read PATH[:FIRST-LAST]") + ", for example " +
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
func (t *turn) readArgument(argument string) link {
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
func (t *turn) readFile(ctx context.Context, l link) error {
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
	file, err := t.workspace().Open(l.path)
	if err != nil {
		if errors.Is(err, workspace.ErrClosed) {
			return err
		}
		return call.Fail(t.whyUnreadable(l.path, err))
	}
	defer file.Close()
	ref := file.Ref()
	name := text.Code(t.show(ref))
	p := part{truncated: true, next: max(l.lines.first, 1)} // if there is no room
	if t.Room > 0 {
		var content workspace.Text
		content, err = file.ReadText(ctx, l.lines.options(t.Room))
		p = partOf(content)
	}
	var notText *workspace.NotTextError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &notText):
		return call.Fail(name + " is not a text file.")
	case err != nil:
		return call.Fail("Cannot read " + name + ": " + reason(err) + ".")
	}
	summary := p.summary(name)
	if p.truncated {
		summary += fmt.Sprintf(" Truncated: an answer is limited to %s. Continue with %s.",
			text.Size(t.Bound), text.Code(fmt.Sprintf("/read %s:%d-", ref.Path(), p.next)))
	}
	if p.content != "" {
		t.Take(len(p.content))
		if err := t.WriteBlock(p.content); err != nil {
			return err
		}
	}
	if err := call.End(sdk.ToolCallStatusCompleted, summary,
		backend.Locations(ref.Path(), p.first)); err != nil {
		return err
	}
	if err := t.Write(summary + "\n\n"); err != nil {
		return err
	}
	return t.mentionInstructions(ctx, ref)
}

// part is the part of a file that was read.
type part struct {
	content     string
	first, last int  // the lines in content; 0 if there are none
	total       int  // the number of lines in the file, 0 if unknown
	truncated   bool // not all requested lines fit
	next        int  // the line to continue with
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

func partOf(t workspace.Text) part {
	p := part{content: t.Content, truncated: t.Cut == workspace.CutByBytes ||
		t.Cut == workspace.CutInLine, next: t.Next()}
	if t.Content != "" {
		p.first, p.last = t.First, t.First+t.Lines-1
	} else if p.truncated {
		p.next = t.First
	}
	if t.Total > 0 && (t.Cut == workspace.NotCut || p.first == 0) {
		p.total = t.Total
	}
	return p
}

// summary returns a summary of what was read of the file called name.
func (p part) summary(name string) string {
	switch {
	case p.first == 0 && p.truncated:
		return fmt.Sprintf("%s is not shown.", name)
	case p.first == 0 && p.total == 0:
		return fmt.Sprintf("%s is empty.", name)
	case p.first == 0:
		return fmt.Sprintf("%s has only %s.", name, text.Count(p.total, "line", "lines"))
	case p.first == 1 && p.last == p.total:
		return fmt.Sprintf("%s, %s.", name, text.Count(p.total, "line", "lines"))
	}
	of := ""
	if p.total > 0 {
		of = fmt.Sprintf(" of %d", p.total)
	}
	if p.first == p.last {
		return fmt.Sprintf("%s, line %d%s.", name, p.first, of)
	}
	return fmt.Sprintf("%s, lines %d to %d%s.", name, p.first, p.last, of)
}

// whyUnreadable returns why a path cannot be read, with a suggestion if there is one.
func (t *turn) whyUnreadable(path string, err error) string {
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
func (s *session) show(ref workspace.Ref) string {
	return s.roots[ref.Root().Index].Show(ref.Rel())
}

// suggest returns a hint for a path that does not exist: that a relative path exists in another
// root, or that it exists without the root's label, which answers put in front.
func (s *session) suggest(command, path string) string {
	const find = " `/find` finds files by name."
	if filepath.IsAbs(path) {
		return find
	}
	for _, r := range s.roots {
		for _, rel := range []string{path,
			strings.TrimPrefix(filepath.ToSlash(path), r.Label+"/")} {
			if info, err := s.workspace().Stat(r.Path(rel)); err == nil && info.Mode().IsRegular() {
				return fmt.Sprintf(" A relative path starts at %s. Did you mean %s?",
					text.Code(s.roots[0].Label), text.Code(command+" "+r.Path(rel)))
			}
		}
	}
	return find
}

// refusal returns why the workspace refuses a path, or "" if err has another cause.
func refusal(name string, err error) string {
	var outside *workspace.OutsideError
	var special *workspace.SpecialFileError
	var denied *workspace.DeniedError
	var replaced *workspace.ReplacedError
	switch {
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

package explore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
)

// read answers /read, and a prompt of nothing but links.
func (t *turn) read(ctx context.Context, p prompt) error {
	wanted := p.links
	if p.text != "" {
		wanted = append([]link{t.argument(p.text)}, wanted...)
	}
	if len(wanted) == 0 {
		return t.write("Say what to read: " + code("/read PATH[:FIRST-LAST]") + ", such as " + code("/read main.go:1-20") + ".\n")
	}
	for _, l := range wanted {
		if err := t.readOne(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// argument is what /read was given. A file whose own name ends like a range of lines goes first.
func (t *turn) argument(text string) link {
	path, lines, ok := splitLines(text)
	if !ok {
		return link{path: text}
	}
	if _, err := t.workspace().Stat(text); err == nil {
		return link{path: text}
	}
	return link{path, lines}
}

func (t *turn) readOne(ctx context.Context, l link) error {
	title := "Read " + clip(l.path, 200)
	input := map[string]any{"path": l.path}
	if !l.lines.whole() {
		title += ":" + l.lines.String()
		input["lines"] = l.lines.String()
	}
	call, err := t.begin(toolRead, title, input)
	if err != nil {
		return err
	}
	file, err := t.workspace().Open(l.path)
	if err != nil {
		if errors.Is(err, workspace.ErrClosed) {
			return err
		}
		return call.fail(t.whyNot(l.path, err))
	}
	defer file.Close()
	ref := file.Ref()
	name := t.roots[ref.Root().Index].show(ref.Rel())
	p := part{cut: true, next: max(l.lines.first, 1)} // what is read where there is no room
	if t.room > 0 {
		var text workspace.Text
		text, err = file.ReadText(ctx, l.lines.options(t.room))
		p = partOf(text)
	}
	var no *workspace.NotTextError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &no):
		return call.fail(code(name) + " is not text.")
	case err != nil:
		return call.fail(code(name) + " cannot be read: " + reason(err) + ".")
	}
	return t.show(call, ref, name, p)
}

// show writes the lines that were read.
func (t *turn) show(call tool, ref workspace.Ref, name string, p part) error {
	said := p.summary(name)
	if p.cut {
		said += fmt.Sprintf(" Cut: an answer holds %s.", size(t.bound))
		said += " Go on with " + code(fmt.Sprintf("/read %s:%d-", ref.Path(), p.next)) + "."
	}
	var places []location
	if validPath(ref.Path()) {
		places = []location{{Path: ref.Path(), Line: p.first}}
	}
	t.take(len(p.text))
	if len(p.text) > 0 {
		if err := t.writeFenced(p.text); err != nil {
			return err
		}
	}
	if err := call.end(toolCompleted, said, places); err != nil {
		return err
	}
	return t.write(said + "\n\n")
}

// writeFenced writes a text as a block, line by line, so that it goes out in chunks.
func (t *turn) writeFenced(text string) error {
	mark := fence(text)
	if err := t.write(mark + "text\n"); err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if err := t.write(line); err != nil {
			return err
		}
	}
	if !strings.HasSuffix(text, "\n") {
		mark = "\n" + mark
	}
	return t.write(mark + "\n\n")
}

// whyNot says why a path cannot be read, and where what was meant may be.
func (t *turn) whyNot(path string, err error) string {
	name := code(clip(path, 200))
	if why := refusal(name, err); why != "" {
		return why
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "There is no file " + name + "." + t.elsewhere("/read", path)
	case errors.Is(err, syscall.EISDIR):
		return name + " is a directory. " + code("/find") + " lists files."
	default:
		return name + " cannot be read: " + reason(err) + "."
	}
}

// refusal says why nothing is done with a path that the workspace refuses, "" if it does not.
func refusal(name string, err error) string {
	var outside *workspace.OutsideError
	var special *workspace.SpecialFileError
	var denied *workspace.DeniedError
	switch {
	case errors.As(err, &outside):
		return fmt.Sprintf("%s is outside the session's roots: %s.", name, outside.Why)
	case errors.As(err, &denied):
		return fmt.Sprintf("%s is refused by policy: %s is denied.", name, code(denied.By.String()))
	case errors.As(err, &special):
		return fmt.Sprintf("%s is a %s, not a regular file.", name, special.Kind)
	default:
		return ""
	}
}

// elsewhere tells a user who gave a relative path that starts in another root, or with the
// name of a root as answers write it, what to give instead (A20).
func (t *turn) elsewhere(command, path string) string {
	if filepath.IsAbs(path) {
		return ""
	}
	for _, r := range t.roots {
		for _, rel := range []string{path, strings.TrimPrefix(filepath.ToSlash(path), r.label+"/")} {
			if info, err := t.workspace().Stat(r.path(rel)); err == nil && info.Mode().IsRegular() {
				return fmt.Sprintf(" A relative path starts at %s. Did you mean %s?", code(t.roots[0].label), code(command+" "+r.path(rel)))
			}
		}
	}
	return ""
}

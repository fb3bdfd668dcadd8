package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type writeFileInput struct {
	Path      string `json:"path"`
	Content   string `json:"content" jsonschema:"the whole content"`
	IfExists  string `json:"if_exists,omitempty" jsonschema:"default replace" enum:"replace,fail"`
	IfVersion string `json:"if_version,omitempty" jsonschema:"{version}"`
}

// Limits on the difference that a result shows. They are low because the model knows what it wrote,
// and gets the result again in each of the following requests.
const (
	writeDiffLines = 8
	editDiffLines  = 40
)

func (s *service) write(ctx context.Context, in writeFileInput) (Result, error) {
	c, err := s.plan(ctx, writeRequest{path: in.Path, version: in.IfVersion,
		text: func(_ context.Context, old *string) (string, []string, error) {
			if old != nil && in.IfExists == "fail" {
				return "", nil, &fs.PathError{Op: "write", Path: in.Path, Err: fs.ErrExist}
			}
			return in.Content, nil, workspace.CheckText(in.Path, []byte(in.Content))
		}})
	if err != nil {
		return Result{}, err
	}
	return s.rewrite(ctx, c, writeDiffLines)
}

// rewrite asks for permission to write a file, and writes it. The result shows at most that many
// lines of the difference.
func (s *service) rewrite(ctx context.Context, c Change, lines int) (Result, error) {
	if c.Unchanged() {
		return s.written(c, "already had this content", versionOf(c.New), c.notes, lines), nil
	}
	c, err := s.apply(ctx, c)
	if err != nil {
		return Result{}, err
	}
	outcome, version, notes := "was changed", versionOf(c.New), c.notes
	if c.Old == nil {
		outcome = "was created"
	}
	if c.edited.editor != nil {
		var note string
		if version, note = s.afterwards(ctx, c); note != "" {
			notes = append(notes, note)
		}
	}
	return s.written(c, outcome, version, notes, lines), nil
}

// maxPlans is how often an edit is planned because others keep changing the same lines. Each time,
// one of them has succeeded.
const maxPlans = 100

// apply makes a change if it is permitted, and returns it as it was made.
func (s *service) apply(ctx context.Context, c Change) (Change, error) {
	for plans := 1; ; plans++ {
		if err := s.permit(ctx, c); err != nil {
			return Change{}, fmt.Errorf("nothing was changed, permission to %s was denied: %w", c,
				err)
		}
		made, err := s.change(ctx, c)
		if err == nil {
			if s.made != nil {
				s.made(made)
			}
			return made, nil
		}
		next, ok := s.after(ctx, c, err)
		if !ok || plans == maxPlans {
			return Change{}, err
		}
		c = next
	}
}

// planned returns the function that serves a tool which makes the change of a plan, if that is
// permitted, and says what was done.
func planned[In any](
	plan func(*service, context.Context, In) (Change, error),
) func(*service, context.Context, In) (Result, error) {
	return func(s *service, ctx context.Context, in In) (Result, error) {
		c, err := plan(s, ctx, in)
		if err == nil {
			c, err = s.apply(ctx, c)
		}
		if err != nil {
			return Result{}, err
		}
		return c.done(), nil
	}
}

// done says what was done to an entry.
func (c Change) done() Result {
	said := locate(c.Ref).String()
	switch c.Kind {
	case CreateDirectory:
		said += " was created\n" + createdAbove(c.Parents)
	case Delete:
		said += " was deleted (" + c.What + ")\n"
	default:
		said += fmt.Sprintf(" was moved to %s (%s)\n", locate(c.To), c.What)
	}
	return Result{Text: said}
}

// after returns the change to try after c has failed with an error, if there is one. A change of
// a part of a file is planned again.
func (s *service) after(ctx context.Context, c Change, err error) (next Change, ok bool) {
	if loss, ok := errors.AsType[*workspace.LossError](err); ok { // more than was predicted
		c.Loses |= loss.Losses
		return c, true
	}
	if !c.wanted.partial || !errors.As(err, new(*workspace.ChangedError)) {
		return Change{}, false
	}
	next, err = s.plan(ctx, c.wanted)
	return next, err == nil && !next.Unchanged()
}

// written returns the result of writing a file: what happened to it, its version, notes, and at most
// that many lines of the difference.
func (s *service) written(c Change, outcome, version string, notes []string, lines int) Result {
	if c.Loses != 0 && !c.Unchanged() {
		notes = append(notes, "the file "+c.Loses.String())
	}
	if stored := c.edited.stored; stored != utf8Text {
		notes = append(notes, "the file is still "+string(stored)+" text")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s, version %s\n%s", locate(c.Ref), outcome,
		text.Count(countLines(c.New), "line", "lines"), version, createdAbove(c.Parents))
	for _, note := range notes {
		b.WriteString(note + "\n")
	}
	if c.Old != nil { // otherwise the model has just sent all of it
		b.WriteString(s.beginning(hunks(*c.Old, c.New), lines))
	}
	return Result{Text: b.String()}
}

// beginning returns the first lines of a diff within the limits, and says how many it leaves out.
func (s *service) beginning(diff string, lines int) string {
	var b strings.Builder
	more := 0
	for line := range strings.Lines(diff) {
		if len(line) > s.limits.line {
			line = text.Prefix(line, s.limits.line) + "…\n"
		}
		if lines == 0 || b.Len()+len(line) > s.limits.bytes {
			more++
			lines = 0
			continue
		}
		b.WriteString(line)
		lines--
	}
	if more > 0 {
		fmt.Fprintf(&b, "[%s of the difference not shown]\n", text.Count(more, "line", "lines"))
	}
	return b.String()
}

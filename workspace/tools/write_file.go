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
	IfVersion string `json:"if_version,omitempty" jsonschema:"VERSION"`
}

type changedFile struct {
	location
	Outcome string          // what happened to the file, such as "was created"
	Parents []workspace.Ref // the directories that were created above it
	Lines   int             // number of lines of the file
	Version string          // version of the file, for if_version of a later change
	Diff    string          // the change as the hunks of a unified diff, or their beginning
	More    int             // number of lines of the diff that are left out
	Notes   []string        // how an edit was adapted to the file
}

// Limits on the difference that a result shows. They are low because the model knows what it wrote,
// and gets the result again in each of the following requests.
const (
	writeDiffLines = 8
	editDiffLines  = 40
)

func (s *Set) write(ctx context.Context, in writeFileInput) (changedFile, error) {
	c, err := s.planText(ctx, in.Path, in.IfVersion, func(old *string) (string, error) {
		if old != nil && in.IfExists == "fail" {
			return "", &fs.PathError{Op: "write", Path: in.Path, Err: fs.ErrExist}
		}
		return in.Content, workspace.CheckText(in.Path, []byte(in.Content))
	})
	if err != nil {
		return changedFile{}, err
	}
	return s.rewrite(ctx, c, writeDiffLines)
}

// planText plans to write a file, which must have the given version unless that is "".
func (s *Set) planText(ctx context.Context, path, version string,
	newText func(old *string) (string, error)) (Change, error) {
	return plan(ctx, s.ws, s.editor, path, s.limits.fileSize, func(old *string) (string, error) {
		if version != "" && (old == nil || strings.TrimSpace(version) != versionOf(*old)) {
			return "", &workspace.ChangedError{Path: path}
		}
		return newText(old)
	})
}

// rewrite asks for permission to write a file, and writes it. The result shows at most that many
// lines of the difference.
func (s *Set) rewrite(ctx context.Context, c Change, lines int) (changedFile, error) {
	if !c.Unchanged() {
		var err error
		if c, err = s.apply(ctx, c); err != nil {
			return changedFile{}, err
		}
	}
	out := s.changed(c, lines)
	if c.edited.editor != nil && !c.Unchanged() {
		var note string
		if out.Version, note = s.afterwards(ctx, c); note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	return out, nil
}

// maxPlans is how often an edit is planned because others keep changing the same lines. Each time,
// one of them has succeeded.
const maxPlans = 100

// apply makes a change if it is permitted, and returns it as it was made.
func (s *Set) apply(ctx context.Context, c Change) (Change, error) {
	for plans := 1; ; plans++ {
		if err := s.permit(ctx, c); err != nil {
			return c, fmt.Errorf("nothing was changed, permission to %s was denied: %w", c, err)
		}
		made, err := c.apply(ctx, s.ws)
		if err == nil && s.made != nil {
			s.made(made)
		}
		if err == nil || c.Kind != Write || plans == maxPlans {
			return made, err
		}
		next, ok := c.after(ctx, err)
		if !ok {
			return c, err
		}
		c = next
	}
}

// after returns the change to try after apply has failed with an error, if there is one. A change
// of a part of a file is planned again.
func (c Change) after(ctx context.Context, err error) (next Change, ok bool) {
	if loss, ok := errors.AsType[*workspace.LossError](err); ok { // more than was predicted
		c.Loses |= loss.Losses
		return c, true
	}
	if _, changed := errors.AsType[*workspace.ChangedError](err); !changed || !c.partial {
		return c, false
	}
	next, err = c.again(ctx)
	next.partial = true
	return next, err == nil && !next.Unchanged()
}

// changed returns the result of writing a file.
func (s *Set) changed(c Change, lines int) changedFile {
	out := changedFile{
		location: locate(c.Ref), Outcome: "was changed", Parents: c.Parents,
		Lines: countLines(c.New), Version: versionOf(c.New),
	}
	if c.Loses != 0 && !c.Unchanged() {
		out.Notes = append(out.Notes, "the file "+c.Loses.String())
	}
	if stored := c.edited.stored; stored != utf8Text {
		out.Notes = append(out.Notes, "the file is still "+string(stored)+" text")
	}
	switch {
	case c.Unchanged():
		out.Outcome = "already had this content"
	case c.Old == nil:
		out.Outcome = "was created" // the model has just sent all of it
	default:
		out.Diff, out.More = s.beginning(hunks(c.Diff()), lines)
	}
	return out
}

// beginning returns the first lines of a diff within the limits, and the number of those that it
// leaves out.
func (s *Set) beginning(diff string, lines int) (shown string, more int) {
	var b strings.Builder
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
	return b.String(), more
}

func (c changedFile) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s, version %s\n%s", c.location, c.Outcome,
		text.Count(c.Lines, "line", "lines"), c.Version, createdAbove(c.Parents))
	for _, note := range c.Notes {
		b.WriteString(note + "\n")
	}
	b.WriteString(c.Diff)
	if c.More > 0 {
		fmt.Fprintf(&b, "[%s of the difference not shown]\n", text.Count(c.More, "line", "lines"))
	}
	return b.String()
}

package tools

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type writeFileInput struct {
	Path      string `json:"path" jsonschema:"absolute, or relative to the first root; its directory must exist"`
	Content   string `json:"content" jsonschema:"the whole content"`
	IfExists  string `json:"if_exists,omitempty" jsonschema:"if the file exists; default replace"`
	IfVersion string `json:"if_version,omitempty" jsonschema:"fail if the file no longer has this version, which read_file shows"`
}

type changedFile struct {
	location
	Outcome string // what happened to the file, such as "was created"
	Lines   int    // number of lines of the file
	Version string // version of the file, for if_version of a later change
	Diff    string // the change as a unified diff
	Cut     *truncation
	// Reindented reports whether the indentation of an edit was adapted to the file.
	Reindented bool
}

func (s *Set) writeFileTool() Tool {
	return define(s, Tool{
		Name:        "write_file",
		Description: "Create a file or replace all of its content. edit_file changes a part.",
		Annotations: Annotations{Destructive: true, Idempotent: true},
	}, func(in *schema) {
		in.notEmpty("path", "if_version")
		in.oneOf("if_exists", "replace", "fail")
	}, s.write)
}

func (s *Set) write(ctx context.Context, in writeFileInput) (changedFile, error) {
	c, err := s.planText(ctx, in.Path, in.IfVersion, func(old *string) (string, error) {
		if old != nil && in.IfExists == "fail" {
			return "", &fs.PathError{Op: "write", Path: in.Path, Err: fs.ErrExist}
		}
		if !isText([]byte(in.Content)) {
			return "", notText(in.Path, []byte(in.Content))
		}
		return in.Content, nil
	})
	if err != nil {
		return changedFile{}, err
	}
	return s.rewrite(ctx, c)
}

// planText plans to write a file, which must have the given version, "" for any.
func (s *Set) planText(ctx context.Context, path, version string,
	newText func(old *string) (string, error)) (Change, error) {
	return Plan(ctx, s.ws, path, s.limits.fileSize, func(old *string) (string, error) {
		if version != "" && (old == nil || versionOf(*old) != version) {
			return "", &workspace.ChangedError{Path: path}
		}
		return newText(old)
	})
}

// rewrite asks for permission to write a file, and writes it.
func (s *Set) rewrite(ctx context.Context, c Change) (changedFile, error) {
	outcome := "was changed"
	switch {
	case c.Unchanged():
		return s.changed(c, outcome), nil
	case c.Old == nil:
		outcome = "was created"
	}
	if err := s.apply(ctx, c); err != nil {
		return changedFile{}, err
	}
	return s.changed(c, outcome), nil
}

// apply makes a change if it is permitted.
func (s *Set) apply(ctx context.Context, c Change) error {
	if err := s.permit(ctx, c); err != nil {
		return fmt.Errorf("nothing was changed, permission was denied to %s: %w", c, err)
	}
	return c.Apply(ctx, s.ws)
}

// changed returns the result of writing a file.
func (s *Set) changed(c Change, outcome string) changedFile {
	if c.Unchanged() {
		outcome = "already had this content"
	}
	out := changedFile{
		location: locate(c.Ref), Outcome: outcome, Lines: countLines(c.New),
		Version: versionOf(c.New), Diff: c.Diff(),
	}
	if len(out.Diff) > s.limits.bytes {
		shown := text.Prefix(out.Diff, s.limits.bytes)
		out.Diff = shown[:strings.LastIndexByte(shown, '\n')+1]
		out.Cut = s.limits.reached("bytes")
		out.Cut.How = "Only the difference is truncated, not the change."
	}
	return out
}

func (c changedFile) String() string {
	note := ""
	if c.Reindented {
		note = "old_text differs from the file in its indentation; new_text is indented like the " +
			"file\n"
	}
	return fmt.Sprintf("%s %s, %s, version %s\n%s%s%s",
		c.location, c.Outcome, text.Count(c.Lines, "line",
			"lines"), c.Version, note, c.Diff, c.Cut.note())
}

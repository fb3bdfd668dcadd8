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
	Path      string `json:"path" jsonschema:"the file, absolute or relative to the first root; its directory must exist"`
	Content   string `json:"content" jsonschema:"the complete new content of the file"`
	IfExists  string `json:"if_exists,omitempty" jsonschema:"what to do if the file already exists"`
	IfVersion string `json:"if_version,omitempty" jsonschema:"the version that read_file returned; fails without writing if the file has changed since"`
}

type changedFile struct {
	Location
	Outcome string // created, changed, or unchanged if the file already had this content
	Lines   int    // number of lines of the file
	Version string // version of the new content, for if_version of a later change
	Diff    string // the change as a unified diff
	Cut     *truncation
}

func (s *Set) writeFileTool() Tool {
	return define(s, Tool{
		Name:  "write_file",
		Title: "Write file",
		Description: "Create a file or replace its whole content. The user may be asked for permission first. " +
			"Use edit_file to change part of a file.",
		Annotations: Annotations{Destructive: true, Idempotent: true},
	}, func(in *schema) {
		in.notEmpty("path", "if_version")
		in.oneOf("if_exists", "replace", "fail")
	}, s.write)
}

func (s *Set) write(ctx context.Context, in writeFileInput) (changedFile, error) {
	return s.rewrite(ctx, in.Path, in.IfVersion, func(old *string) (string, error) {
		if old != nil && in.IfExists == "fail" {
			return "", &fs.PathError{Op: "write", Path: in.Path, Err: fs.ErrExist}
		}
		if !isText([]byte(in.Content)) {
			return "", notText(in.Path, []byte(in.Content))
		}
		return in.Content, nil
	})
}

// rewrite plans to write a file, asks for permission, and writes it.
func (s *Set) rewrite(ctx context.Context, path, version string, newText func(old *string) (string, error)) (changedFile, error) {
	c, err := Plan(ctx, s.ws, path, s.limits.fileSize, func(old *string) (string, error) {
		if version != "" && (old == nil || versionOf(*old) != version) {
			return "", &workspace.ChangedError{Path: path}
		}
		return newText(old)
	})
	if err != nil {
		return changedFile{}, err
	}
	outcome := "changed"
	switch {
	case c.Unchanged():
		return s.written(c, "unchanged"), nil
	case c.Old == nil:
		outcome = "created"
	}
	if err := s.apply(ctx, c); err != nil {
		return changedFile{}, err
	}
	return s.written(c, outcome), nil
}

// apply makes a change if it is permitted.
func (s *Set) apply(ctx context.Context, c Change) error {
	if err := s.permit(ctx, c); err != nil {
		return fmt.Errorf("nothing was changed, permission was denied to %s: %w", c, err)
	}
	return c.Apply(ctx, s.ws)
}

// written returns the result of writing a file.
func (s *Set) written(c Change, outcome string) changedFile {
	out := changedFile{
		Location: locate(c.Ref), Outcome: outcome, Lines: len(splitLines(c.New)), Version: versionOf(c.New), Diff: c.Diff(),
	}
	if len(out.Diff) > s.limits.bytes {
		shown := text.Prefix(out.Diff, s.limits.bytes)
		out.Diff = shown[:strings.LastIndexByte(shown, '\n')+1]
		out.Cut = &truncation{Limit: "bytes", Bound: int64(s.limits.bytes), How: "The file was changed completely: read it to see the rest."}
	}
	return out
}

func (c changedFile) String() string {
	if c.Outcome == "unchanged" {
		return fmt.Sprintf("%s already had this content, version %s\n", c.Location, c.Version)
	}
	return fmt.Sprintf("%s was %s, %s, version %s\n%s%s",
		c.Location, c.Outcome, text.Count(c.Lines, "line", "lines"), c.Version, c.Diff, c.Cut.note())
}

package tools

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

type writeFileInput struct {
	Path      string `json:"path" jsonschema:"the file; absolute, or relative to the first root; its directory must exist"`
	Content   string `json:"content" jsonschema:"all of what the file shall hold"`
	IfExists  string `json:"if_exists,omitempty" jsonschema:"what to do if there is such a file already"`
	IfVersion string `json:"if_version,omitempty" jsonschema:"the version that read_file gave: nothing is written if the file has another content by now"`
}

type changedFile struct {
	Place
	Outcome string `json:"outcome" jsonschema:"created, changed, or unchanged if the file was like that already"`
	Lines   int    `json:"lines" jsonschema:"of the file"`
	Version string `json:"version" jsonschema:"of the content: for if_version of a later change"`
	Diff    string `json:"diff" jsonschema:"what changed, as a unified diff"`
	Cut     *Cut   `json:"cut,omitempty"`
}

func (s *Set) writeFileTool() Tool {
	return define(s, Tool{
		Name:  "write_file",
		Title: "Write file",
		Description: "Make a text the content of a file, all of it or nothing. The user may be asked first. " +
			"To change a part of a file, use edit_file.",
		Annotations: Annotations{Destructive: true, Idempotent: true},
	}, func(in *schema) {
		in.notEmpty("path", "if_version")
		in.oneOf("if_exists", "replace", "fail")
	}, s.write)
}

func (s *Set) write(ctx context.Context, in writeFileInput) (changedFile, error) {
	return s.change(ctx, in.Path, in.IfVersion, func(old *string) (string, error) {
		if old != nil && in.IfExists == "fail" {
			return "", &fs.PathError{Op: "write", Path: in.Path, Err: fs.ErrExist}
		}
		if !isText([]byte(in.Content)) {
			return "", notText(in.Path, []byte(in.Content))
		}
		return in.Content, nil
	})
}

// change plans a change, asks, and makes it.
func (s *Set) change(ctx context.Context, path, version string, rewrite func(old *string) (string, error)) (changedFile, error) {
	c, err := Plan(ctx, s.ws, path, s.o.MaxFileSize, func(old *string) (string, error) {
		if version != "" && (old == nil || versionOf(*old) != version) {
			return "", &workspace.ChangedError{Path: path}
		}
		return rewrite(old)
	})
	if err != nil {
		return changedFile{}, err
	}
	if c.Unchanged() {
		return s.changed(c, "unchanged"), nil
	}
	if err := s.o.Permit(ctx, c); err != nil {
		return changedFile{}, &RefusedError{Change: c, Err: err}
	}
	if err := c.Apply(ctx, s.ws); err != nil {
		return changedFile{}, err
	}
	if c.Old == nil {
		return s.changed(c, "created"), nil
	}
	return s.changed(c, "changed"), nil
}

// changed says what became of a file.
func (s *Set) changed(c Change, outcome string) changedFile {
	out := changedFile{Place: PlaceOf(c.Ref), Outcome: outcome, Lines: len(splitLines(c.New)), Version: versionOf(c.New), Diff: c.Diff()}
	if len(out.Diff) > s.o.MaxBytes {
		shown := strings.TrimSuffix(clip(out.Diff, s.o.MaxBytes), "…")
		out.Diff = shown[:strings.LastIndexByte(shown, '\n')+1]
		out.Cut = &Cut{Limit: "bytes", Bound: int64(s.o.MaxBytes), How: "The change itself is whole: read the file to see it."}
	}
	return out
}

func (c changedFile) text() string {
	if c.Outcome == "unchanged" {
		return fmt.Sprintf("%s (root %s) was like that already, version %s\n", Printable(c.Path), Printable(c.Root), c.Version)
	}
	return fmt.Sprintf("%s (root %s) was %s, %s, version %s\n%s%s",
		Printable(c.Path), Printable(c.Root), c.Outcome, count(c.Lines, "line", "lines"), c.Version, c.Diff, c.Cut.note())
}

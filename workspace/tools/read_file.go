package tools

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type readFileInput struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line; default 1" min:"1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"number of lines" min:"1"`
	// LineOffset is workspace.TextOptions.Skip.
	LineOffset int `json:"line_offset,omitempty" jsonschema:"bytes of the first line to skip" min:"1"`
	Tail       int `json:"tail,omitempty" jsonschema:"read this many lines at the end instead" min:"1"`
}

// fileText is some lines of a file.
type fileText struct {
	workspace.Text
	Stored  encoding // of the file
	Unsaved bool     // whether this is the editor's unsaved text
	// version of the content, if all of it is returned; for if_version of write_file and edit_file
	Version string
	Cut     *truncation
}

func (s *service) readFile(ctx context.Context, in readFileInput) (Result, error) {
	read, err := s.read(ctx, in)
	if err != nil {
		return Result{}, err
	}
	return Result{Text: read.String()}, nil
}

// read reads the lines that a call asks for.
func (s *service) read(ctx context.Context, in readFileInput) (fileText, error) {
	if in.Tail > 0 {
		if in.Offset > 0 || in.Limit > 0 || in.LineOffset > 0 {
			return fileText{},
				errors.New("tail cannot be combined with offset, line_offset or limit")
		}
		all, err := s.readText(ctx, in.Path, workspace.TextOptions{First: math.MaxInt})
		if err != nil {
			return fileText{}, err
		}
		in.Limit = min(in.Tail, s.limits.lines)
		in.Offset = max(all.Total-in.Limit+1, 1)
	}
	return s.readLines(ctx, in, s.limits.bytes)
}

// readLines reads lines of at most maxBytes in total.
func (s *service) readLines(ctx context.Context, in readFileInput, maxBytes int) (fileText, error) {
	lines := min(s.limits.lines, cmp.Or(in.Limit, s.limits.lines))
	o := workspace.TextOptions{First: in.Offset, Skip: in.LineOffset, MaxLines: lines,
		MaxBytes: maxBytes, MaxWhole: maxCounted}
	if in.Limit > 0 {
		o.MaxWhole = int64(s.limits.bytes)
	}
	out, err := s.readText(ctx, in.Path, o)
	if err != nil {
		return fileText{}, err
	}
	switch cut := out.Text.Cut; {
	case cut == workspace.NotCut && out.First == 1 && out.Skipped == 0:
		whole := out.Content
		if out.BOM {
			whole = bom + whole
		}
		out.Version = versionOf(whole)
	case cut != workspace.NotCut && !(cut == workspace.CutByLines && in.Limit == lines):
		out.Cut = s.cutOf(out.Text, maxBytes)
	}
	return out, nil
}

// readText reads lines of a file, which may be stored as something else than UTF-8. If the editor
// has it open with unsaved changes, it reads the editor's text.
func (s *service) readText(
	ctx context.Context, path string, o workspace.TextOptions,
) (out fileText, err error) {
	file, err := s.checked.Open(path)
	if err != nil {
		return out, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return out, err
	}
	var from io.ReaderAt = file
	size := info.Size()
	var shown string
	if shown, out.Unsaved = s.unsaved(ctx, file); out.Unsaved {
		from, size = strings.NewReader(shown), int64(len(shown))
	}
	out.Text, err = workspace.ReadTextFrom(ctx, from, size, path, o)
	if _, other := errors.AsType[*workspace.NotTextError](err); other && !out.Unsaved {
		_, seekErr := file.Seek(0, io.SeekStart)
		content, readErr := readAll(file, s.limits.fileSize, nil)
		if decoded, e, ok := decode(content); seekErr == nil && readErr == nil && ok {
			out.Stored = e
			out.Text, err = workspace.ReadTextFrom(ctx, bytes.NewReader(decoded),
				int64(len(decoded)), path, o)
		}
	}
	out.Ref = file.Ref()
	return out, err
}

// maxCounted is the size up to which a file is read to its end to count its lines, in bytes.
const maxCounted = 1 << 20

// cutOf describes how a limit truncated a text.
func (s *service) cutOf(read workspace.Text, maxBytes int) *truncation {
	c := &truncation{Unit: "lines", Limit: s.limits.lines}
	if read.Cut != workspace.CutByLines {
		c = &truncation{Unit: "bytes", Limit: maxBytes}
	}
	c.After = fmt.Sprintf("line %d", read.First+read.Lines-1)
	c.How = fmt.Sprintf("Continue with offset %d.", read.Next())
	if read.Cut == workspace.CutInLine {
		c.After = "the beginning of " + c.After
		c.How = fmt.Sprintf("Continue in it with offset %d and line_offset %d, or after it with "+
			"offset %d.", read.First, read.Rest(), read.Next())
	}
	return c
}

// versionLength is the number of digits of a version: enough that two texts of a file never have
// the same version by accident. It does not decide whether a file has changed since a change was
// planned.
const versionLength = 12

// versionOf returns a short hash of the content of a file.
func versionOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])[:versionLength]
}

func (f fileText) String() string {
	var b strings.Builder
	at := locate(f.Ref)
	switch {
	case f.Lines == 0 && f.Total == 0:
		fmt.Fprintf(&b, "%s is empty\n", at)
	case f.Lines == 0 && f.Skipped > 0:
		fmt.Fprintf(&b, "%s, line %d has only %s\n", at, f.First, text.Count(f.Skipped,
			"byte", "bytes"))
	case f.Lines == 0:
		fmt.Fprintf(&b, "%s has only %s\n", at, text.Count(f.Total, "line", "lines"))
	default:
		fmt.Fprintf(&b, "%s, lines %d to %d", at, f.First, f.First+f.Lines-1)
		switch {
		case f.Total >= 0:
			fmt.Fprintf(&b, " of %d", f.Total)
		case f.Text.Cut != workspace.NotCut:
			b.WriteString(" and more follow")
		}
		if f.Version != "" {
			b.WriteString(", version " + f.Version)
		}
		if f.Stored != utf8Text {
			b.WriteString(", stored as " + string(f.Stored))
		}
		if f.Unsaved {
			b.WriteString(", as it is in the user's editor, where changes are not saved")
		}
		if f.Skipped > 0 {
			fmt.Fprintf(&b, ", without the first %s", text.Count(f.Skipped, "byte", "bytes"))
		}
		b.WriteString("\n" + f.Content)
		if f.Text.Cut == workspace.CutInLine {
			b.WriteString("\n")
		} else if !strings.HasSuffix(f.Content, "\n") {
			b.WriteString("\n[no newline at the end]\n")
		}
	}
	return b.String() + f.Cut.note()
}

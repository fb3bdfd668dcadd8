package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

type readFileInput struct {
	Path   string `json:"path" jsonschema:"the file; absolute, or relative to the first root"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first line to read, counted from 1; default 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to read at most"`
}

type fileText struct {
	Place
	Content string `json:"content" jsonschema:"the lines with their ends, as they are in the file"`
	First   int    `json:"first_line"`
	Lines   int    `json:"lines" jsonschema:"how many lines content has"`
	Total   int    `json:"total_lines,omitempty" jsonschema:"of the file, if it was read to its end"`
	Size    int64  `json:"size" jsonschema:"of the file, in bytes"`
	Version string `json:"version,omitempty" jsonschema:"of the content, if all of it is here: for if_version of the tools that change files"`
	Cut     *Cut   `json:"cut,omitempty"`
}

func (s *Set) readFileTool() Tool {
	return define(s, Tool{
		Name:  "read_file",
		Title: "Read file",
		Description: fmt.Sprintf("Read lines of a UTF-8 text file: at most %d lines and %d bytes at once. Use offset and limit "+
			"to read on, or to read a part.", s.o.MaxLines, s.o.MaxBytes),
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
	}, func(in *schema) {
		in.notEmpty("path")
		in.atLeast("offset", 1)
		in.atLeast("limit", 1)
	}, s.read)
}

func (s *Set) read(ctx context.Context, in readFileInput) (fileText, error) {
	lines := s.o.MaxLines
	if in.Limit > 0 {
		lines = min(lines, in.Limit)
	}
	text, err := s.ws.ReadText(ctx, in.Path, workspace.TextOptions{First: in.Offset, MaxLines: lines, MaxBytes: s.o.MaxBytes})
	if err != nil {
		return fileText{}, err
	}
	out := fileText{
		Place: shownPlace(text.Ref), Content: text.Content, First: text.First, Lines: text.Lines, Total: max(text.Total, 0), Size: text.Size,
	}
	if text.First == 1 && text.Cut == workspace.NotCut {
		out.Version = versionOf(withMark(text))
	}
	if text.Cut != workspace.NotCut && !(text.Cut == workspace.CutByLines && in.Limit == lines) {
		out.Cut = s.cutText(text)
	}
	return out, nil
}

// cutText says where a text was cut that would have gone on.
func (s *Set) cutText(text workspace.Text) *Cut {
	after := fmt.Sprintf("line %d", text.First+text.Lines-1)
	next := text.Next()
	how := fmt.Sprintf("Go on with offset %d.", next)
	switch text.Cut {
	case workspace.CutByLines:
		return &Cut{Limit: "lines", Bound: int64(s.o.MaxLines), After: after, Next: next, How: how}
	case workspace.CutInLine:
		return &Cut{Limit: "bytes", Bound: int64(s.o.MaxBytes), After: "the beginning of " + after, Next: next,
			How: "The rest of that line cannot be read; go on with offset " + fmt.Sprint(next) + "."}
	default:
		return &Cut{Limit: "bytes", Bound: int64(s.o.MaxBytes), After: after, Next: next, How: how}
	}
}

// withMark is a whole text as it is in the file.
func withMark(text workspace.Text) string {
	if text.BOM {
		return "\ufeff" + text.Content
	}
	return text.Content
}

// versionOf tells contents apart.
func versionOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:16])
}

func (f fileText) text() string {
	var b strings.Builder
	switch {
	case f.Lines == 0 && f.Total == 0:
		fmt.Fprintf(&b, "%s (root %s) is empty\n", Printable(f.Path), Printable(f.Root))
	case f.Lines == 0:
		fmt.Fprintf(&b, "%s (root %s) has only %s\n", Printable(f.Path), Printable(f.Root), count(f.Total, "line", "lines"))
	default:
		of := ""
		if f.Total > 0 {
			of = fmt.Sprintf(" of %d", f.Total)
		}
		fmt.Fprintf(&b, "%s (root %s), lines %d to %d%s", Printable(f.Path), Printable(f.Root), f.First, f.First+f.Lines-1, of)
		if f.Version != "" {
			b.WriteString(", version " + f.Version)
		}
		b.WriteString("\n" + f.Content)
		if !strings.HasSuffix(f.Content, "\n") {
			b.WriteString("\n[no line end here]\n")
		}
	}
	return b.String() + f.Cut.note()
}

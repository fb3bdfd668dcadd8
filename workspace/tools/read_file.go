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

type fileText struct {
	location
	Stored  encoding // of the file
	Unsaved bool     // whether this is the editor's unsaved text
	Content string   // the lines with their line endings, exactly as in the file
	First   int      // number of the first line
	Lines   int      // number of lines in content
	Skipped int      // number of bytes of the first line that are left out
	InLine  bool     // whether content ends within a line
	Total   int      // number of lines of the file, if it was read to its end
	More    bool     // whether there are more lines, if total is not known
	// version of the content, if all of it is returned; for if_version of write_file and edit_file
	Version string
	Cut     *truncation
}

func (s *Set) read(ctx context.Context, in readFileInput) (fileText, error) {
	if in.Tail > 0 {
		if in.Offset > 0 || in.Limit > 0 || in.LineOffset > 0 {
			return fileText{},
				errors.New("tail cannot be combined with offset, line_offset or limit")
		}
		all, _, _, err := s.readText(ctx, in.Path, workspace.TextOptions{First: math.MaxInt})
		if err != nil {
			return fileText{}, err
		}
		in.Limit = min(in.Tail, s.limits.lines)
		in.Offset = max(all.Total-in.Limit+1, 1)
	}
	return s.readLines(ctx, in, s.limits.bytes)
}

// readLines reads lines of at most maxBytes in total.
func (s *Set) readLines(ctx context.Context, in readFileInput, maxBytes int) (fileText, error) {
	lines := min(s.limits.lines, cmp.Or(in.Limit, s.limits.lines))
	o := workspace.TextOptions{First: in.Offset, Skip: in.LineOffset, MaxLines: lines,
		MaxBytes: maxBytes, MaxWhole: maxCounted}
	if in.Limit > 0 {
		o.MaxWhole = int64(s.limits.bytes)
	}
	read, stored, unsaved, err := s.readText(ctx, in.Path, o)
	if err != nil {
		return fileText{}, err
	}
	out := fileText{
		Unsaved: unsaved, Stored: stored,
		location: locate(read.Ref), Content: read.Content, First: read.First,
		Lines: read.Lines, Skipped: read.Skipped, Total: max(read.Total, 0),
		InLine: read.Cut == workspace.CutInLine,
		More:   read.Total < 0 && read.Cut != workspace.NotCut,
	}
	if read.First == 1 && read.Skipped == 0 && read.Cut == workspace.NotCut {
		whole := read.Content
		if read.BOM {
			whole = "\ufeff" + whole
		}
		out.Version = versionOf(whole)
	}
	if read.Cut != workspace.NotCut && !(read.Cut == workspace.CutByLines && in.Limit == lines) {
		out.Cut = s.cutOf(read, maxBytes)
	}
	return out, nil
}

// readText reads lines of a file. If the editor has it open with unsaved changes, it reads the
// editor's text.
func (s *Set) readText(ctx context.Context, path string, o workspace.TextOptions) (
	read workspace.Text, stored encoding, unsaved bool, err error) {
	file, err := s.ws.Open(path)
	if err != nil {
		return read, "", false, err
	}
	defer file.Close()
	if text, unsaved := s.unsaved(ctx, file); unsaved {
		read, err = workspace.ReadTextFrom(ctx, strings.NewReader(text), int64(len(text)), path, o)
		read.Ref = file.Ref()
		return read, "", true, err
	}
	read, stored, err = readStored(ctx, file, path, s.limits.fileSize, o)
	return read, stored, false, err
}

// readStored reads lines of an open file, which may be stored as something else than UTF-8. maxSize
// bounds the size of such a file.
func readStored(ctx context.Context, file *workspace.File, path string, maxSize int64,
	o workspace.TextOptions) (read workspace.Text, stored encoding, err error) {
	info, err := file.Stat()
	if err != nil {
		return read, "", err
	}
	read, err = workspace.ReadTextFrom(ctx, file, info.Size(), path, o)
	if _, other := errors.AsType[*workspace.NotTextError](err); other {
		_, seekErr := file.Seek(0, io.SeekStart)
		content, readErr := readAll(ctx, file, maxSize, nil)
		if decoded, e, ok := decode(content); seekErr == nil && readErr == nil && ok {
			stored = e
			read, err = workspace.ReadTextFrom(ctx, bytes.NewReader(decoded), int64(len(decoded)),
				path, o)
		}
	}
	read.Ref = file.Ref()
	return read, stored, err
}

// maxCounted is the size up to which a file is read to its end to count its lines, in bytes.
const maxCounted = 1 << 20

// cutOf describes how a limit truncated a text.
func (s *Set) cutOf(read workspace.Text, maxBytes int) *truncation {
	c := s.limits.reached("lines")
	if read.Cut != workspace.CutByLines {
		c = &truncation{Limit: "bytes", Bound: int64(maxBytes)}
	}
	c.Next = read.Next()
	c.After = fmt.Sprintf("line %d", read.First+read.Lines-1)
	c.How = fmt.Sprintf("Continue with offset %d.", c.Next)
	if read.Cut == workspace.CutInLine {
		c.After = "the beginning of " + c.After
		c.How = fmt.Sprintf("Continue in it with offset %d and line_offset %d, or after it with "+
			"offset %d.", read.First, read.Rest(), c.Next)
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
	switch {
	case f.Lines == 0 && f.Total == 0:
		fmt.Fprintf(&b, "%s is empty\n", f.location)
	case f.Lines == 0 && f.Skipped > 0:
		fmt.Fprintf(&b, "%s, line %d has only %s\n", f.location, f.First, text.Count(f.Skipped,
			"byte", "bytes"))
	case f.Lines == 0:
		fmt.Fprintf(&b, "%s has only %s\n", f.location, text.Count(f.Total, "line", "lines"))
	default:
		fmt.Fprintf(&b, "%s, lines %d to %d", f.location, f.First, f.First+f.Lines-1)
		switch {
		case f.Total > 0:
			fmt.Fprintf(&b, " of %d", f.Total)
		case f.More:
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
		if f.InLine {
			b.WriteString("\n")
		} else if !strings.HasSuffix(f.Content, "\n") {
			b.WriteString("\n[no newline at the end]\n")
		}
	}
	return b.String() + f.Cut.note()
}

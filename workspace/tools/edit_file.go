package tools

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
)

type editFileInput struct {
	Path       string `json:"path" jsonschema:"the file; absolute, or relative to the first root"`
	OldText    string `json:"old_text" jsonschema:"the text to replace, exactly as it is in the file, indentation included; it must be there exactly once unless replace_all is true"`
	NewText    string `json:"new_text" jsonschema:"what to put in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"whether to replace it wherever it is; default false"`
	IfVersion  string `json:"if_version,omitempty" jsonschema:"the version that read_file gave: nothing is written if the file has another content by now"`
}

func (s *Set) editFileTool() Tool {
	return define(s, Tool{
		Name:  "edit_file",
		Title: "Edit file",
		Description: "Replace a text in a file by another, exactly. The user may be asked first. The answer is the difference. " +
			"Line ends are those of the file.",
		Annotations: Annotations{Destructive: true},
	}, func(in *schema) { in.notEmpty("path", "old_text", "if_version") }, s.edit)
}

func (s *Set) edit(ctx context.Context, in editFileInput) (changedFile, error) {
	r := Replacement{Old: in.OldText, New: in.NewText}
	if in.ReplaceAll {
		r.Occurrences = Every
	}
	return s.change(ctx, in.Path, in.IfVersion, func(old *string) (string, error) {
		if old == nil {
			return "", &fs.PathError{Op: "edit", Path: in.Path, Err: fs.ErrNotExist}
		}
		text, err := r.Apply(in.Path, *old)
		if err == nil && !isText([]byte(text)) {
			err = notText(in.Path, []byte(text))
		}
		return text, err
	})
}

// Occurrences says how often the text that a [Replacement] replaces may stand in a file.
type Occurrences int

const (
	// Once: exactly once.
	Once Occurrences = iota
	// Every: at least once, and each is replaced.
	Every
)

// Replacement puts one text in place of another, exactly as they are. Only line ends adapt: in a file whose lines
// all end with "\r\n", a "\n" without "\r" in either text stands for that.
type Replacement struct {
	Old, New    string
	Occurrences Occurrences
}

// MatchError: the text to be replaced is not in the file as often as it must be.
type MatchError struct {
	// Path is the file's, as it was asked for.
	Path string
	// Lines are where it was found, from 1; at most the first ten.
	Lines []int
	// Count is how often it was found.
	Count int
}

func (e *MatchError) Error() string {
	if e.Count == 0 {
		return e.Path + " does not have the text that is to be replaced, just as it is given: read the file again"
	}
	return fmt.Sprintf("%s has the text that is to be replaced %d times, first in lines %d and %d: give more of what is around it, or replace all",
		e.Path, e.Count, e.Lines[0], e.Lines[1])
}

// Apply replaces in the text of the file at path. The error is a *[MatchError].
func (r Replacement) Apply(path, text string) (string, error) {
	if onlyCRLF(text) && !strings.Contains(r.Old+r.New, "\r") {
		r.Old = strings.ReplaceAll(r.Old, "\n", "\r\n")
		r.New = strings.ReplaceAll(r.New, "\n", "\r\n")
	}
	count := 0
	if r.Old != "" {
		count = strings.Count(text, r.Old)
	}
	if count == 0 || count > 1 && r.Occurrences == Once {
		return "", &MatchError{Path: path, Lines: linesOf(text, r.Old, min(count, 10)), Count: count}
	}
	return strings.ReplaceAll(text, r.Old, r.New), nil
}

// onlyCRLF reports whether text has lines, and all end with "\r\n".
func onlyCRLF(text string) bool {
	ends := strings.Count(text, "\n")
	return ends > 0 && strings.Count(text, "\r\n") == ends
}

// linesOf are the lines in which the first occurrences of part begin.
func linesOf(text, part string, most int) (lines []int) {
	line, at := 1, 0
	for len(lines) < most {
		next := strings.Index(text[at:], part)
		if next < 0 {
			break
		}
		line += strings.Count(text[at:at+next], "\n")
		lines = append(lines, line)
		line += strings.Count(part, "\n")
		at += next + len(part)
	}
	return lines
}

package tools

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
)

type editFileInput struct {
	Path       string `json:"path" jsonschema:"the file, absolute or relative to the first root"`
	OldText    string `json:"old_text" jsonschema:"the text to replace, exactly as it is in the file, including indentation; it must occur exactly once unless replace_all is true"`
	NewText    string `json:"new_text" jsonschema:"the text to replace it with"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"whether to replace every occurrence; default false"`
	IfVersion  string `json:"if_version,omitempty" jsonschema:"the version that read_file returned; fails without writing if the file has changed since"`
}

func (s *Set) editFileTool() Tool {
	return define(s, Tool{
		Name:  "edit_file",
		Title: "Edit file",
		Description: "Replace an exact text in a file. The user may be asked for permission first. Returns the difference. " +
			"The file's line endings are kept.",
		Annotations: Annotations{Destructive: true},
	}, func(in *schema) { in.notEmpty("path", "old_text", "if_version") }, s.edit)
}

func (s *Set) edit(ctx context.Context, in editFileInput) (changedFile, error) {
	r := Replacement{Old: in.OldText, New: in.NewText, All: in.ReplaceAll}
	return s.rewrite(ctx, in.Path, in.IfVersion, func(old *string) (string, error) {
		if old == nil {
			return "", &fs.PathError{Op: "edit", Path: in.Path, Err: fs.ErrNotExist}
		}
		edited, err := r.Apply(in.Path, *old)
		if err == nil && !isText([]byte(edited)) {
			err = notText(in.Path, []byte(edited))
		}
		return edited, err
	})
}

// Replacement replaces one text with another, exactly as they are. Only line endings adapt: in a file whose lines all end with
// "\r\n", a "\n" without "\r" in either text stands for that.
type Replacement struct {
	Old, New string
	// All allows Old to occur more than once and replaces every occurrence.
	All bool
}

// MatchError is returned if the text to replace does not occur in the file as often as it must.
type MatchError struct {
	// Path is the path of the file as it was given.
	Path string
	// Count is how often the text occurs.
	Count int
	// Lines are the lines of the first two occurrences, if there are more than one.
	Lines []int
}

func (e *MatchError) Error() string {
	if e.Count == 0 {
		return e.Path + " does not contain the text to replace: read the file again and give the text exactly"
	}
	return fmt.Sprintf("%s contains the text to replace %d times, first in lines %d and %d: include more of the surrounding text, or replace all",
		e.Path, e.Count, e.Lines[0], e.Lines[1])
}

// Apply makes the replacement in text, which is that of the file at path. The error is a *[MatchError].
func (r Replacement) Apply(path, text string) (string, error) {
	if onlyCRLF(text) && !strings.Contains(r.Old+r.New, "\r") {
		r.Old = strings.ReplaceAll(r.Old, "\n", "\r\n")
		r.New = strings.ReplaceAll(r.New, "\n", "\r\n")
	}
	count := 0
	if r.Old != "" {
		count = strings.Count(text, r.Old)
	}
	if count == 0 || count > 1 && !r.All {
		return "", &MatchError{Path: path, Count: count, Lines: linesOf(text, r.Old, min(count, 2))}
	}
	return strings.ReplaceAll(text, r.Old, r.New), nil
}

// onlyCRLF reports whether text has line endings and all are "\r\n".
func onlyCRLF(text string) bool {
	ends := strings.Count(text, "\n")
	return ends > 0 && strings.Count(text, "\r\n") == ends
}

// linesOf returns the numbers of the lines in which the first n occurrences of part begin.
func linesOf(text, part string, n int) (lines []int) {
	line, at := 1, 0
	for len(lines) < n {
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

package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
)

type editFileInput struct {
	Path       string        `json:"path"`
	OldText    string        `json:"old_text,omitempty" jsonschema:"{old}" min:"1"`
	NewText    *string       `json:"new_text,omitempty" jsonschema:"required with old_text: its replacement"`
	ReplaceAll bool          `json:"replace_all,omitempty" jsonschema:"every occurrence"`
	Edits      []replacement `json:"edits,omitempty" jsonschema:"{edits}" max:"1000"`
	DryRun     bool          `json:"dry_run,omitempty" jsonschema:"only show the difference"`
	IfVersion  string        `json:"if_version,omitempty" jsonschema:"as for write_file"`
}

// replacements returns the replacements to make.
func (in editFileInput) replacements() ([]replacement, error) {
	single := in.OldText != "" || in.NewText != nil || in.ReplaceAll
	switch {
	case single && len(in.Edits) > 0:
		return nil, errors.New("give old_text and new_text, or edits, but not both")
	case len(in.Edits) > 0:
		return in.Edits, nil
	case in.OldText == "" || in.NewText == nil:
		return nil, errors.New("give old_text and new_text, or edits")
	default:
		return []replacement{{Old: in.OldText, New: *in.NewText, All: in.ReplaceAll}}, nil
	}
}

func (s *service) edit(ctx context.Context, in editFileInput) (Result, error) {
	replacements, err := in.replacements()
	if err != nil {
		return Result{}, err
	}
	edit := writeRequest{path: in.Path, version: in.IfVersion, partial: true,
		text: func(ctx context.Context, old *string) (string, []string, error) {
			return s.replace(ctx, in.Path, old, replacements)
		}}
	c, err := s.plan(ctx, edit)
	if err != nil {
		return Result{}, err
	}
	if in.DryRun && !c.Unchanged() {
		return s.written(c, "would be changed", versionOf(*c.Old), c.notes, math.MaxInt), nil
	}
	return s.rewrite(ctx, c, editDiffLines)
}

// replace makes replacements, one after the other, in the text of a file.
func (s *service) replace(
	ctx context.Context, path string, old *string, all []replacement,
) (edited string, notes []string, err error) {
	if old == nil {
		return "", nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.time, errTimeLimit)
	defer cancel()
	edited = *old
	var adapted adaptation
	for i, r := range all {
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		var how adaptation
		edited, how, err = r.applyLoosely(ctx, path, edited, s.limits.fileSize)
		if err != nil && len(all) > 1 {
			err = fmt.Errorf("nothing was changed, because of replacement %d of %d: %w", i+1,
				len(all), err)
		}
		if err != nil {
			return "", nil, err
		}
		adapted |= how
	}
	return edited, adapted.notes(), workspace.CheckText(path, []byte(edited))
}

// replacement replaces one text with another, exactly as they are. Only line endings are adapted,
// if neither text has a "\r". In a file whose lines all end with "\r\n", a "\n" stands for that. In
// one that has both, a "\n" in the old text stands for either, and the lines of the new text end
// like those of the old one.
type replacement struct {
	Old string `json:"old_text" min:"1"`
	New string `json:"new_text"`
	// All replaces every occurrence of Old. Otherwise Old must occur exactly once.
	All bool `json:"replace_all,omitempty"`
}

// matchError is returned if the text to replace does not occur in the file as often as it must.
type matchError struct {
	// Path is the path of the file as it was given.
	Path string
	// Count is how often the text occurs.
	Count int
	// Lines are the lines of the first two occurrences, if there are more than one.
	Lines []int
}

func (e *matchError) Error() string {
	if e.Count == 0 {
		return e.Path + " does not contain the text to replace: read the file again and give the " +
			"text exactly"
	}
	return fmt.Sprintf("%s contains the text to replace %d times, first in lines %d and %d: "+
		"include more of the surrounding text, or replace all",
		e.Path, e.Count, e.Lines[0], e.Lines[1])
}

// withLineEndings returns the replacement with the line endings of text.
func (r replacement) withLineEndings(text string) replacement {
	if onlyCRLF(text) && !strings.Contains(r.Old+r.New, "\r") {
		r.Old = strings.ReplaceAll(r.Old, "\n", "\r\n")
		r.New = strings.ReplaceAll(r.New, "\n", "\r\n")
	}
	return r
}

// apply makes the replacement in text, the text of the file at path. The error is a *matchError, or
// a *[workspace.TooLargeError] if the result could be larger than maxSize bytes.
func (r replacement) apply(path, text string, maxSize int64) (string, error) {
	plain, longest := text, len(r.New)
	if !strings.Contains(r.Old+r.New, "\r") && strings.Contains(text, "\r\n") {
		plain = strings.ReplaceAll(text, "\r\n", "\n")
		longest += strings.Count(r.New, "\n")
	}
	count := 0
	if r.Old != "" {
		count = strings.Count(plain, r.Old)
	}
	if count == 0 || count > 1 && !r.All {
		lines := linesOf(plain, r.Old, min(count, 2))
		return "", &matchError{Path: path, Count: count, Lines: lines}
	}
	size := int64(len(text)) + int64(count)*int64(longest-len(r.Old))
	switch {
	case size > maxSize:
		return "", &workspace.TooLargeError{Path: path, Size: size, Limit: maxSize}
	case len(plain) == len(text):
		return strings.ReplaceAll(text, r.Old, r.New), nil
	}
	ending := "\n"
	if onlyCRLF(text) {
		ending = "\r\n"
	}
	var b strings.Builder
	for range count {
		before, after, _ := strings.Cut(plain, r.Old)
		kept := text[:lengthOf(before, text)]
		text = text[len(kept):]
		was := text[:lengthOf(r.Old, text)]
		text, plain = text[len(was):], after
		b.WriteString(kept)
		writeLike(&b, r.New, was, ending)
	}
	b.WriteString(text)
	return b.String(), nil
}

// lengthOf returns how long part is at the beginning of text, where its lines may also end with
// "\r\n".
func lengthOf(part, text string) (n int) {
	for line := range strings.Lines(part) {
		n += len(strings.TrimSuffix(line, "\n"))
		if strings.HasSuffix(line, "\n") {
			_, ending := cutEnding(text[n : n+1+strings.Index(text[n:], "\n")])
			n += len(ending)
		}
	}
	return n
}

// writeLike writes a text, each line of which ends as that of the text before does, and further
// ones as the last. If there was none, they have the ending.
func writeLike(b *strings.Builder, text, was, ending string) {
	for line := range strings.Lines(text) {
		if end := strings.IndexByte(was, '\n'); end >= 0 {
			_, ending = cutEnding(was[:end+1])
			was = was[end+1:]
		}
		content, ended := strings.CutSuffix(line, "\n")
		b.WriteString(content)
		if ended {
			b.WriteString(ending)
		}
	}
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

package tools

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

// Change is what is to become of one file: planned, and shown to somebody who decides, before it is made.
type Change struct {
	// Asked is the path as it was asked for.
	Asked string
	// Ref is where it really leads.
	Ref workspace.Ref
	// Old is the file's text, nil if there is no file yet.
	Old *string
	// New is what it shall be.
	New string
}

// Permit decides whether a change may be made (A30): nil allows it, any error does not and says why. It is
// called once for each change, and may wait for a person.
type Permit func(ctx context.Context, c Change) error

// UnshowableError: a path that no JSON text, and so no client, can show.
type UnshowableError struct{ Path string }

func (e *UnshowableError) Error() string {
	return "the name of what " + e.Path + " leads to is not Unicode text, and cannot be shown"
}

// Plan finds out where path leads and what is there, and calls rewrite with it for what shall be; old is nil if
// there is no file. Nothing is written. limit is the most bytes of a file before and after, 0 for
// [DefaultMaxFileSize].
//
// Errors are those of the workspace, a *[workspace.NotTextError] for a file that is not UTF-8, a
// *[workspace.TooLargeError], an *[UnshowableError], and rewrite's. With an error comes what was
// found out before it.
func Plan(ctx context.Context, ws *workspace.Workspace, path string, limit int64, rewrite func(old *string) (string, error)) (Change, error) {
	c := Change{Asked: path}
	if limit == 0 {
		limit = DefaultMaxFileSize
	}
	ref, err := ws.WriteTarget(path)
	if err != nil {
		return c, err
	}
	if !utf8.ValidString(ref.Path()) {
		return c, &UnshowableError{path}
	}
	c.Ref = ref
	if c.Old, err = current(ctx, ws, path, ref, limit); err != nil {
		return c, err
	}
	if c.New, err = rewrite(c.Old); err != nil {
		return c, err
	}
	if size := int64(len(c.New)); size > limit {
		return c, &workspace.TooLargeError{Path: path, Size: size, Limit: limit}
	}
	return c, nil
}

// current is the text of the file at path, which must be at ref; nil if there is none.
func current(ctx context.Context, ws *workspace.Workspace, path string, ref workspace.Ref, limit int64) (*string, error) {
	file, err := ws.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if file.Ref() != ref {
		return nil, &workspace.MovedError{Path: path, Was: ref, Now: file.Ref()}
	}
	content, err := slurp(ctx, file, limit, nil)
	if errors.Is(err, errLarge) {
		size := limit + 1
		if info, err := file.Stat(); err == nil {
			size = info.Size()
		}
		return nil, &workspace.TooLargeError{Path: path, Size: size, Limit: limit}
	}
	if errors.Is(err, errBinary) || err == nil && !isText(content) {
		return nil, notText(path, content)
	}
	if err != nil {
		return nil, err
	}
	text := string(content)
	return &text, nil
}

func isText(content []byte) bool {
	return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0
}

// notText says what of content is not text.
func notText(path string, content []byte) error {
	line := 1
	for part := range bytes.Lines(content) {
		switch {
		case bytes.IndexByte(part, 0) >= 0:
			return &workspace.NotTextError{Path: path, Kind: "binary", Line: line}
		case !utf8.Valid(part):
			return &workspace.NotTextError{Path: path, Kind: "not UTF-8", Line: line}
		}
		line++
	}
	return &workspace.NotTextError{Path: path, Kind: "binary", Line: 1}
}

// Unchanged reports whether the file is like that already.
func (c Change) Unchanged() bool { return c.Old != nil && *c.Old == c.New }

// FirstLine is the number of the first line that changes, 0 if the file is new, becomes empty, or stays as it is.
func (c Change) FirstLine() int {
	if c.Old == nil || c.Unchanged() || c.New == "" {
		return 0
	}
	line := 1
	for i := 0; i < min(len(*c.Old), len(c.New)) && (*c.Old)[i] == c.New[i]; i++ {
		if c.New[i] == '\n' {
			line++
		}
	}
	return line
}

// Diff is the change as a unified diff, "" if there is none.
func (c Change) Diff() string {
	old, from := "", "/dev/null"
	if c.Old != nil {
		old, from = *c.Old, c.Ref.Path()
	}
	return unified(from, c.Ref.Path(), old, c.New)
}

// Apply makes the change, if everything is as it was planned: the path leads there still (else it is a
// *[workspace.MovedError]), and the file has the text that it had (else a *[workspace.ChangedError], or
// [fs.ErrExist] for one that has come meanwhile). Nothing is written otherwise (C11). The file is replaced as a whole.
func (c Change) Apply(ctx context.Context, ws *workspace.Workspace) error {
	o := workspace.WriteOptions{At: c.Ref, Create: workspace.CreateOnly}
	if c.Old != nil {
		o.Create, o.IfUnchanged = workspace.ReplaceOnly, workspace.VersionOf([]byte(*c.Old))
	}
	_, err := ws.WriteFile(ctx, c.Asked, []byte(c.New), o)
	return err
}

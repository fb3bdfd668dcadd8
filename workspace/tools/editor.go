package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// Editor is an editor that may have files open with unsaved changes. Its methods are called only
// for files that exist in the roots.
type Editor interface {
	// ReadTextFile returns the text of a file. If it returns an error, the text on the disk is
	// used.
	ReadTextFile(ctx context.Context, at workspace.Ref) (string, error)
	// WriteTextFile replaces the text of a file.
	WriteTextFile(ctx context.Context, at workspace.Ref, text string) error
}

// maxOpen is the size of the largest file that the editor is asked for, in bytes.
const maxOpen = 1 << 20

// edited is an editor's version of a file.
type edited struct {
	editor Editor // nil if the file is only on the disk
	shown  string // its text in the editor
	disk   string // its text on the disk
	stored encoding
}

// isUnsaved reports whether the editor's text differs from the disk's, apart from what editors
// leave out and add again when they save.
func (e edited) isUnsaved() bool {
	return e.editor != nil && e.shown != e.disk && canonical(e.shown) != canonical(e.disk)
}

// canonical returns a text without a byte order mark and the end of the last line, and with "\n"
// in place of "\r\n".
func canonical(s string) string {
	s = strings.TrimPrefix(s, bom)
	return strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
}

const bom = "\ufeff"

// text returns the text of the file: the editor's if it is unsaved.
func (e edited) text() string {
	if e.isUnsaved() {
		return e.shown
	}
	return e.disk
}

// openIn returns what the editor has of an open file with this text on the disk. It ignores an
// editor's content that is not text, or is too large.
func (s *service) openIn(ctx context.Context, editor Editor, file *workspace.File, disk string) edited {
	e := edited{disk: disk}
	if editor == nil || len(disk) > maxOpen {
		return e
	}
	shown, err := editor.ReadTextFile(ctx, file.Ref())
	if err == nil && int64(len(shown)) <= s.limits.fileSize && isText([]byte(shown)) {
		e.editor, e.shown = editor, shown
	}
	return e
}

// unsaved returns the editor's text of an open file if that is unsaved.
func (s *service) unsaved(ctx context.Context, file *workspace.File) (text string, ok bool) {
	if s.editor == nil {
		return "", false
	}
	disk, err := readAll(file, maxOpen, nil)
	if err != nil || !isText(disk) {
		return "", false
	}
	e := s.openIn(ctx, s.editor, file, string(disk))
	return e.shown, e.isUnsaved()
}

// writeInEditor lets the editor write a change, unless something has changed since it was planned.
// It returns false if the file must be written on the disk instead.
func (s *service) writeInEditor(ctx context.Context, c Change) (done bool, err error) {
	e := c.edited
	if e.editor == nil {
		return false, nil
	}
	now, err := s.currentText(ctx, e.editor, c.Asked, c.Ref)
	switch {
	case err != nil:
		return false, err
	case now == nil || now.disk != e.disk || now.editor != nil && now.shown != e.shown:
		return false, &workspace.ChangedError{Path: c.Asked}
	case now.editor == nil && e.isUnsaved():
		return false, errUnsaved
	case now.editor == nil:
		return false, nil
	}
	info, err := s.checked.Stat(c.Asked)
	switch {
	case err != nil:
		return false, err
	case info.Mode().Perm()&0o200 == 0:
		return false, &fs.PathError{Op: "write", Path: c.Asked, Err: fs.ErrPermission}
	}
	err = e.editor.WriteTextFile(ctx, c.Ref, e.adapt(c.New))
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case e.isUnsaved():
		return false, fmt.Errorf("%w: %w", errUnsaved, err)
	}
	return false, nil
}

var errUnsaved = errors.New("the file has changes in the user's editor that are not saved, and " +
	"the editor did not accept another one")

// adapt removes from a text what the editor leaves out of the text on the disk.
func (e edited) adapt(s string) string {
	if e.isUnsaved() {
		return s // it was made from the editor's text
	}
	if !strings.HasPrefix(e.shown, bom) {
		s = strings.TrimPrefix(s, bom)
	}
	if !strings.Contains(e.shown, "\r\n") && onlyCRLF(e.disk) {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	if strings.HasSuffix(e.disk, "\n") && !strings.HasSuffix(e.shown, "\n") {
		s = strings.TrimSuffix(s, "\n")
	}
	return s
}

// afterwards describes how the text of a file differs from the one that the editor was given to
// write, and returns its version.
func (s *service) afterwards(ctx context.Context, c Change) (version, note string) {
	now, err := s.currentText(ctx, s.editor, c.Asked, c.Ref)
	switch {
	case err != nil || now == nil:
		return "", "the file cannot be read any more"
	case canonical(now.text()) != canonical(c.New):
		note = "the user's editor has changed the text further, such as by formatting it: read " +
			"the file again before you change it"
	case now.isUnsaved():
		note = "the user's editor has not saved the file: on the disk it is as before"
	}
	return versionOf(now.text()), note
}

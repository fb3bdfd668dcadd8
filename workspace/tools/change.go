package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Change is a planned change to one file or directory. It can be shown to the person who decides
// about it, and then be made.
type Change struct {
	Kind ChangeKind
	// Asked is the path as it was requested, and Ref where it leads. A write follows a link at the
	// end of the path; the other kinds affect the link itself.
	Asked string
	Ref   workspace.Ref
	// Old is the text of the file to be written or deleted. It is nil for a new file, and for one
	// that has no text.
	Old *string
	// New is the text to be written.
	New string
	// AskedTo and To are the destination of a move: the path as it was requested, and where it
	// leads.
	AskedTo string
	To      workspace.Ref
	// What is the type of the entry to delete or move: "file", "directory", "link" or "other".
	What string
	// Parents are the missing directories above the new file or directory, outermost first. They
	// are created with it.
	Parents []workspace.Ref
	// Alike is the path of another entry whose name cannot be told from the one to be created, or
	// "".
	Alike string
	// Loses names what the file to be written will not keep. Nothing else may be lost.
	Loses workspace.Losses

	shown  workspace.Info // the entry to delete
	edited edited         // what the editor has of the file to be written or deleted
	wanted writeRequest   // what is to be written, to plan it again
	notes  []string       // that tell a model how New was made
}

// ChangeKind is the kind of a [Change].
type ChangeKind int

const (
	// Write creates a file or replaces its text.
	Write ChangeKind = iota
	// CreateDirectory creates an empty directory.
	CreateDirectory
	// Delete deletes a file, a link or an empty directory.
	Delete
	// Move gives a file, link or directory a new path, which must not exist.
	Move
)

// Permit decides whether a change may be made: nil allows it, an error rejects it and says why. It
// is called once for each change and may wait for a person. If meanwhile the file has changed so
// that an edit now replaces other lines than were permitted, Permit is called again.
type Permit func(ctx context.Context, c Change) error

// writeRequest says what to write to a file.
type writeRequest struct {
	path    string
	version string // that the file must have, "" for any
	partial bool   // only a part of the text changes, whatever the rest is
	// text returns the new text, and notes that tell a model how it was made, for the old text of
	// the file. That is nil for a new file.
	text func(ctx context.Context, old *string) (text string, notes []string, err error)
}

// plan plans to write a file without changing anything, also if it is open in an editor.
//
// Text may be UTF-16 with a byte order mark or Windows-1252, and stays so. Besides those of the
// workspace and of w.text, errors are *[workspace.NotTextError] for a file that is not text and
// *[workspace.TooLargeError].
func (s *service) plan(ctx context.Context, w writeRequest) (Change, error) {
	ref, parents, err := s.target(Write, w.path)
	if err != nil {
		return Change{}, err
	}
	c := Change{Asked: w.path, Ref: ref, Parents: parents, wanted: w}
	now, err := s.currentText(ctx, s.editor, w.path, ref)
	if err != nil {
		return Change{}, err
	}
	if now == nil {
		c.Alike = lookAlike(s.checked, w.path, looksExactly)
	} else {
		c.Old, c.edited = new(now.text()), *now
		if now.editor == nil { // which would not replace it
			if c.Loses, err = s.checked.WriteLosses(w.path); err != nil {
				return Change{}, err
			}
		}
	}
	if w.version != "" && (c.Old == nil || strings.TrimSpace(w.version) != versionOf(*c.Old)) {
		return Change{}, &workspace.ChangedError{Path: w.path}
	}
	c.New, c.notes, err = w.text(ctx, c.Old)
	if errors.Is(err, fs.ErrNotExist) {
		_, why := s.checked.Stat(w.path)
		if errors.As(why, new(*workspace.ReplacedError)) {
			err = why
		}
	}
	if err != nil {
		return Change{}, err
	}
	if size := int64(len(c.New)); size > s.limits.fileSize {
		return Change{}, &workspace.TooLargeError{Path: w.path, Size: size,
			Limit: s.limits.fileSize}
	}
	if _, err := c.edited.stored.encode(c.New); err != nil {
		return Change{}, err
	}
	return c, nil
}

// target returns where a change that creates something at path leads, and the missing directories
// above it.
func (s *service) target(
	kind ChangeKind, path string,
) (ref workspace.Ref, parents []workspace.Ref, err error) {
	if labelled(s.checked, path) != "" { // it seems to be meant for another root
		return ref, nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrNotExist}
	}
	if kind == Write {
		ref, err = s.checked.WriteTarget(path)
	} else {
		ref, err = s.checked.MkdirTarget(path)
	}
	if errors.Is(err, fs.ErrNotExist) && !errors.As(err, new(*workspace.ReplacedError)) {
		ref, parents, err = s.checked.MissingParents(path, kind == CreateDirectory)
	}
	if err == nil {
		err = showable(path, ref)
	}
	return ref, parents, err
}

// Access returns what the change does to files.
func (c Change) Access() workspace.Access {
	if c.Kind == Move {
		return workspace.Access{Kind: workspace.Move, Path: c.Asked, At: c.Ref,
			Folder: c.What == "directory", ToPath: c.AskedTo, To: c.To}
	}
	return workspace.Access{Kind: workspace.Change, Path: c.Asked, At: c.Ref}
}

// showable returns an error if the path of ref is not Unicode text, which no client could show.
func showable(path string, ref workspace.Ref) error {
	if utf8.ValidString(ref.Path()) {
		return nil
	}
	return errors.New(path + " leads to a name that is not Unicode text and cannot be shown")
}

// currentText returns the text of the file at path, which must be at ref, on the disk and in the
// editor, or nil without a file.
func (s *service) currentText(
	ctx context.Context, editor Editor, path string, ref workspace.Ref,
) (*edited, error) {
	file, err := s.checked.Open(path)
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
	content, err := readAll(file, s.limits.fileSize, nil)
	if errors.Is(err, errLarge) {
		size := s.limits.fileSize + 1
		if info, err := file.Stat(); err == nil {
			size = info.Size()
		}
		return nil, &workspace.TooLargeError{Path: path, Size: size, Limit: s.limits.fileSize}
	}
	text, stored, ok := decode(content)
	if errors.Is(err, errBinary) || err == nil && !ok {
		return nil, workspace.CheckText(path, content)
	}
	if err != nil {
		return nil, err
	}
	e := s.openIn(ctx, editor, file, string(text))
	e.stored = stored
	return &e, nil
}

// Unchanged reports whether the file already has the new text.
func (c Change) Unchanged() bool { return c.Kind == Write && c.Old != nil && *c.Old == c.New }

// FirstLine returns the number of the first line that changes, 0 if the file is new, becomes empty
// or stays the same.
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

// String describes the change on one line, such as "delete file /src/a.go".
func (c Change) String() string {
	path := c.Ref.Path()
	switch {
	case c.Kind == CreateDirectory:
		return "create directory " + path + c.SideEffects()
	case c.Kind == Delete:
		return "delete " + c.What + " " + path
	case c.Kind == Move:
		return fmt.Sprintf("move %s %s to %s", c.What, path, c.To.Path())
	case c.Old == nil:
		return "create file " + path + c.SideEffects()
	default:
		return "change file " + path + c.SideEffects()
	}
}

// SideEffects names the directories that are created too, as in " and its directories /src/a,
// /src/a/b", what a file loses, as in ", which will not keep its owner", or what looks like it. It
// is "" if there is nothing to say.
func (c Change) SideEffects() string {
	if c.Alike != "" {
		return ", beside " + text.Path(c.Alike) + ", whose name looks the same"
	}
	paths := text.JoinFunc(c.Parents, ", ", func(dir workspace.Ref) string {
		return text.Path(dir.Path())
	})
	switch len(c.Parents) {
	case 0:
		if c.Loses != 0 {
			return ", which " + c.Loses.String()
		}
		return ""
	case 1:
		return " and its directory " + paths
	default:
		return " and its directories " + paths
	}
}

// Diff returns the change of text as a unified diff, "" if no text changes.
func (c Change) Diff() string {
	old, from, to := "", "/dev/null", c.Ref.Path()
	if c.Old != nil {
		old, from = *c.Old, c.Ref.Path()
	}
	switch {
	case c.Kind == Delete && c.Old != nil:
		to = "/dev/null"
	case c.Kind != Write:
		return ""
	}
	return unified(from, to, old, c.New)
}

// change makes a change and returns it as it was made, unless something has changed since it was
// planned. The error is then a *[workspace.MovedError] for a path that leads elsewhere, a
// *[workspace.ChangedError] for a file with another text, or [fs.ErrExist] for a file or directory
// that was created in the meantime, and nothing is changed. Files are replaced as a whole.
//
// If a planned write still replaces the same lines by the same lines in the text that the file has
// now, it is made there.
func (s *service) change(ctx context.Context, c Change) (Change, error) {
	if ctx.Err() != nil {
		return c, context.Cause(ctx)
	}
	parents, err := s.makeParents(c)
	made := c
	if err == nil {
		made, err = s.changeEntry(ctx, c)
	}
	if err != nil {
		s.removeMade(parents)
	}
	return made, err
}

// removeMade removes directories that makeParents made, unless they are no longer empty.
func (s *service) removeMade(made []workspace.Info) {
	for _, dir := range slices.Backward(made) {
		at := dir.Ref()
		_ = s.checked.Remove(at.Path(), workspace.RemoveOptions{At: at, Same: dir})
	}
}

// makeParents creates the missing directories of a change, and returns those that it created. It
// accepts a directory that somebody else has created in the meantime.
func (s *service) makeParents(c Change) (made []workspace.Info, err error) {
	if len(c.Parents) == 0 {
		return nil, nil
	}
	switch now, _, err := s.target(c.Kind, c.Asked); {
	case err != nil:
		return nil, err
	case now != c.Ref:
		return nil, &workspace.MovedError{Path: c.Asked, Was: c.Ref, Now: now}
	}
	for _, dir := range c.Parents {
		err := s.checked.Mkdir(dir.Path(), dir)
		if errors.Is(err, fs.ErrExist) {
			info, statErr := s.checked.Stat(dir.Path())
			if statErr == nil && info.IsDir() && info.Ref() == dir {
				continue
			}
		}
		if err != nil {
			return made, err
		}
		info, err := s.checked.Lstat(dir.Path())
		if err != nil {
			return made, err
		}
		made = append(made, info)
	}
	return made, nil
}

// changeEntry makes a change in directories that exist.
func (s *service) changeEntry(ctx context.Context, c Change) (Change, error) {
	var err error
	switch c.Kind {
	case CreateDirectory:
		err = s.checked.Mkdir(c.Asked, c.Ref)
	case Delete:
		o := workspace.RemoveOptions{At: c.Ref, Same: c.shown}
		if c.Old != nil {
			o.IfUnchanged, err = c.oldVersion()
		}
		if err == nil {
			err = s.checked.Remove(c.Asked, o)
		}
	case Move:
		err = s.checked.Rename(c.Asked, c.AskedTo, c.Ref, c.To)
	default:
		return s.writeText(ctx, c)
	}
	return c, err
}

// maxRenewals is how often a write is planned again because some program keeps changing the file.
const maxRenewals = 16

// writeText writes a file while no other [Change] can.
func (s *service) writeText(ctx context.Context, c Change) (Change, error) {
	lock, err := s.checked.LockFile(ctx, c.Asked)
	if err != nil {
		return c, err
	}
	defer lock.Unlock()
	for range maxRenewals {
		err = s.tryToWrite(ctx, c, lock)
		if _, changed := errors.AsType[*workspace.ChangedError](err); !changed {
			break
		}
		next, planErr := s.plan(ctx, c.wanted)
		if planErr != nil || !c.covers(next) {
			break
		}
		c = next
	}
	return c, err
}

// tryToWrite writes a file if it is as it was when the write was planned.
func (s *service) tryToWrite(ctx context.Context, c Change, lock *workspace.FileLock) error {
	if done, err := s.writeInEditor(ctx, c); done || err != nil {
		return err
	}
	o := workspace.WriteOptions{At: c.Ref, Create: workspace.CreateOnly, Lock: lock,
		MayLose: c.Loses}
	var err error
	if c.Old != nil {
		o.Create = workspace.ReplaceOnly
		if o.IfUnchanged, err = c.oldVersion(); err != nil {
			return err
		}
	}
	stored, err := c.edited.stored.encode(c.New)
	if err == nil {
		_, err = s.checked.WriteFile(ctx, c.Asked, stored, o)
	}
	return err
}

// oldVersion returns the version of the file that the change replaces or deletes.
func (c Change) oldVersion() (workspace.Version, error) {
	stored, err := c.edited.stored.encode(*c.Old)
	return workspace.VersionOf(stored), err
}

// covers reports whether a person who has seen the write c has also seen what next does: it
// replaces the same lines in the same file and loses nothing more.
func (c Change) covers(next Change) bool {
	return c.Ref == next.Ref && c.Old != nil && next.Old != nil && next.Loses&^c.Loses == 0 &&
		slices.Equal(changedLines(*c.Old, c.New), changedLines(*next.Old, next.New))
}

package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxErrorText bounds the text of an error, which may quote the caller, in bytes.
const maxErrorText = 2 << 10

// argumentError reports the arguments that a tool rejects.
type argumentError struct {
	tool     string
	problems []string // at least one
}

func (e *argumentError) Error() string {
	return "invalid arguments for " + e.tool + ": " + strings.Join(e.problems, "; ")
}

// maxProblems is the most problems that one error lists.
const maxProblems = 10

func (e *argumentError) add(format string, args ...any) {
	switch len(e.problems) {
	case maxProblems:
		e.problems = append(e.problems, "and more")
	case maxProblems + 1:
	default:
		e.problems = append(e.problems, text.Truncate(fmt.Sprintf(format, args...), maxErrorText))
	}
}

// callError is an error of a tool with a hint on what to do instead, "" for none.
type callError struct {
	err  error
	hint string
}

func (e *callError) Error() string {
	message := text.Truncate(e.err.Error(), maxErrorText)
	if e.hint != "" {
		message += ". " + text.Truncate(e.hint, maxErrorText)
	}
	return message
}

func (e *callError) Unwrap() error { return e.err }

// explain bounds the text of an error and adds a hint on what to do instead.
func (s *service) explain(tool, path string, err error) error {
	return &callError{err: err, hint: s.hint(tool, path, err)}
}

func (s *service) hint(tool, path string, err error) string {
	var large *workspace.TooLargeError
	switch {
	case errors.As(err, new(*workspace.ReplacedError)):
		return "No file of that folder can be used until then"
	case errors.Is(err, workspace.ErrClosed):
		return "No files are accessible; list_roots shows the accessible folders"
	case errors.As(err, new(*workspace.OutsideError)):
		return "list_roots shows all folders"
	case errors.As(err, new(*workspace.ChangedError)), errors.As(err, new(*workspace.MovedError)):
		return "Nothing was changed. Read it again before you decide what to do"
	case errors.Is(err, syscall.ENOTEMPTY):
		return "Delete what is in it first"
	case errors.Is(err, syscall.EXDEV):
		return "It is on another file system: write the file there and delete this one"
	case errors.Is(err, syscall.EBUSY):
		return "Something is mounted there, such as a single file in a container, which cannot " +
			"be replaced. Tell the user: it can be changed where it is mounted from"
	case errors.Is(err, fs.ErrExist) && tool == "move_file":
		return "Nothing is ever replaced: choose a path that does not exist, such as " +
			"DIRECTORY/NAME to move something into a directory"
	case errors.Is(err, syscall.EINVAL) && tool == "move_file":
		return "A directory cannot be moved into itself"
	case errors.Is(err, fs.ErrNotExist) && tool == "move_file" && pathOf(err) != path:
		parent := "The parent directory must exist; create_directory creates one"
		return strings.TrimPrefix(s.elsewhere(pathOf(err))+". "+parent, ". ")
	case errors.Is(err, fs.ErrNotExist):
		if other := lookAlike(s.checked, path, looks); other != "" {
			return "There is " + text.Printable(other) + ", whose name looks like it"
		}
		return s.elsewhere(path)
	case errors.As(err, new(*workspace.NotTextError)) &&
		(tool == "read_file" || tool == "read_files"):
		return "Use read_media for images, sounds and PDFs"
	case errors.As(err, &large) && tool == "write_file" && s.isLarge(path, large):
		return "The user could not be shown what would be lost. To replace it, delete it first"
	case errors.Is(err, errNotMedia):
		return "Use read_file for text"
	case errors.Is(err, syscall.EISDIR):
		return "Use list_directory to list a directory"
	case errors.Is(err, syscall.ENOTDIR) && tool == "list_directory":
		return "Use read_file to read a file"
	default:
		return ""
	}
}

// isLarge reports whether the file at path is too large, and not only its new content.
func (s *service) isLarge(path string, err *workspace.TooLargeError) bool {
	info, statErr := s.checked.Stat(path)
	return statErr == nil && info.Size() > err.Limit
}

// pathOf returns the path that an error is about, "" if it names none.
func pathOf(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Path
	}
	return ""
}

// maxLookAlikes is the maximum number of entries that lookAlike compares.
const maxLookAlikes = 10_000

// lookAlike returns the path of an entry whose name looks like the last one of a path that does not
// exist, or "". looks returns what names that look alike have in common.
func lookAlike(ws *workspace.Workspace, path string, looks func(name string) string) string {
	dir, err := ws.OpenDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	defer dir.Close()
	entries, _ := dir.Entries(context.Background())
	want := looks(filepath.Base(path))
	for _, e := range entries[:min(len(entries), maxLookAlikes)] {
		if looks(e.Name) == want && e.Name != filepath.Base(path) {
			return joinNative(dir.Ref().Path(), e.Name)
		}
	}
	return ""
}

// looks returns what names have in common that look alike, or differ in case only.
func looks(name string) string { return strings.ToLower(looksExactly(name)) }

// looksExactly returns what names have in common that a person cannot tell apart: they have other
// spaces, characters that are not seen, or another form of Unicode. Two that differ in case are
// different files, where the disk does not find the one by the name of the other.
func looksExactly(name string) string {
	spaced := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		default:
			return r
		}
	}, name)
	return norm.NFKC.String(spaced)
}

// elsewhere returns a hint for a relative path that does not exist: where relative paths start, and
// which other root has that path.
func (s *service) elsewhere(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return ""
	}
	base := "Relative paths start at " + s.checked.Root(0).Dir.String()
	if candidate := Elsewhere(s.checked, path); candidate != "" {
		return base + "; did you mean " + candidate + "?"
	}
	if candidate := labelled(s.checked, path); candidate != "" {
		return base + "; did you mean " + candidate + "? To make it there write " +
			joinNative(".", path)
	}
	return base
}

// labelled returns the path that a relative path stands for if it begins with the name of a root,
// and cwd has nothing of that name. Otherwise it returns "".
func labelled(ws *workspace.Workspace, path string) string {
	slashed := filepath.ToSlash(path)
	first, _, _ := strings.Cut(slashed, "/")
	if _, err := ws.Lstat(first); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	labels := ws.Labels()
	for i, root := range ws.Opened() {
		for _, name := range []string{labels[i], filepath.Base(root.Dir.String())} {
			if rest, ok := strings.CutPrefix(slashed+"/", name+"/"); ok {
				return filepath.Join(root.Dir.String(), filepath.FromSlash(rest))
			}
		}
	}
	return ""
}

// Elsewhere returns what a relative path that does not exist may mean: a file or directory that has
// this path in another root, also if the path begins with the label of that root. It returns "" if
// no root has one.
func Elsewhere(ws *workspace.Workspace, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return ""
	}
	labels := ws.Labels()
	for i, root := range ws.Opened() {
		unlabelled := strings.TrimPrefix(filepath.ToSlash(path)+"/", labels[i]+"/")
		for _, rel := range []string{path, unlabelled} {
			candidate := filepath.Join(root.Dir.String(), filepath.FromSlash(rel))
			if _, err := ws.Stat(candidate); err == nil {
				return candidate
			}
		}
	}
	return ""
}

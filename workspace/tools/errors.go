package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

// UnknownToolError: there is no tool of this name, or not for this host.
type UnknownToolError struct{ Name string }

func (e *UnknownToolError) Error() string {
	return fmt.Sprintf("there is no tool %q", clip(e.Name, 100))
}

// ArgumentError: a tool was called with other arguments than it takes.
type ArgumentError struct {
	Tool string
	// Problems are all that is wrong, at least one, in words that a model can act on.
	Problems []string
}

func (e *ArgumentError) Error() string {
	return "the arguments of " + e.Tool + " are not right: " + strings.Join(e.Problems, "; ")
}

// maxProblems is the most problems that are told at once.
const maxProblems = 10

func (e *ArgumentError) add(format string, args ...any) {
	switch len(e.Problems) {
	case maxProblems:
		e.Problems = append(e.Problems, "and more")
	case maxProblems + 1:
	default:
		e.Problems = append(e.Problems, clip(fmt.Sprintf(format, args...), maxEcho))
	}
}

// maxEcho is how much of an error is told, in bytes: it may hold what the caller sent.
const maxEcho = 2 << 10

// clip cuts s to at most size bytes, between characters, and marks the cut.
func clip(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:size] + "…"
}

// RefusedError: the host did not permit a change.
type RefusedError struct {
	// Change is what was to be done.
	Change Change
	// Err is the host's.
	Err error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("nothing was written: %s was not allowed to be changed: %v", e.Change.Ref.Path(), e.Err)
}

// Unwrap is the host's error.
func (e *RefusedError) Unwrap() error { return e.Err }

// Error: a tool could not do what it was called for. Err is one of package workspace or of this one.
type Error struct {
	Tool string
	Err  error
	// Hint is what to do instead, "" if there is nothing to say.
	Hint string
}

func (e *Error) Error() string {
	said := clip(e.Err.Error(), maxEcho)
	if e.Hint == "" {
		return said
	}
	return said + ". " + clip(e.Hint, maxEcho)
}

// Unwrap is what happened.
func (e *Error) Unwrap() error { return e.Err }

func (s *Set) failed(tool, path string, err error) error {
	return &Error{Tool: tool, Err: err, Hint: s.hint(tool, path, err)}
}

// hint is what to do about an error.
func (s *Set) hint(tool, path string, err error) string {
	var outside *workspace.OutsideError
	var changed *workspace.ChangedError
	switch {
	case errors.Is(err, workspace.ErrClosed):
		return "There is nothing that could be accessed; ask for the list of the roots"
	case errors.As(err, &outside):
		return "The roots are " + s.rootList() + "; list_roots tells more"
	case errors.As(err, &changed):
		return "Read it again, and decide anew"
	case errors.Is(err, fs.ErrNotExist) && tool == "write_file":
		return strings.TrimPrefix(s.elsewhere(path)+". The directory must exist", ". ")
	case errors.Is(err, fs.ErrNotExist):
		return s.elsewhere(path)
	case errors.Is(err, syscall.EISDIR):
		return "It is a directory: list_directory lists it"
	default:
		return ""
	}
}

// rootList names the first roots.
func (s *Set) rootList() string {
	const most = 10
	var names []string
	for _, r := range s.ws.Opened() {
		if len(names) == most {
			return strings.Join(names, ", ") + " and more"
		}
		names = append(names, r.Dir.String())
	}
	return strings.Join(names, ", ")
}

// elsewhere helps a caller who gave a relative path that starts in another root than cwd (A20).
func (s *Set) elsewhere(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return ""
	}
	base := "A relative path starts at " + s.ws.Root(0).Dir.String()
	for _, r := range s.ws.Opened()[1:] {
		there := joinNative(r.Dir.String(), filepath.FromSlash(path))
		if _, err := s.ws.Stat(there); err == nil {
			return base + "; another root has one: " + there
		}
	}
	return base
}

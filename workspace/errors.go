package workspace

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by operations on a closed Workspace.
var ErrClosed = errors.New("the session's workspace is closed: its roots have changed or the session has ended, so ask again")

// TooLargeError: more than may be written at once.
type TooLargeError struct {
	Path string
	// Size and Limit are in bytes.
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: %d bytes are more than the %d that may be written", e.Path, e.Size, e.Limit)
}

// MovedError: a path that leads elsewhere than it did, or was said to (C11).
type MovedError struct {
	Path     string
	Was, Now Ref
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("%s leads to %s now, and led to %s", e.Path, e.Now.Path(), e.Was.Path())
}

// ChangedError: a file that has another content than it had, or is gone.
type ChangedError struct{ Path string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s has changed since it was read", e.Path)
}

// LimitError: something that has, or needs, more than a bound of the operation's options.
type LimitError struct {
	Path string
	// What is counted, in a person's words.
	What  string
	Limit int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: more than %d %s", e.Path, e.Limit, e.What)
}

// NotTextError: a file that is not UTF-8 text.
type NotTextError struct {
	Path string
	// Kind is "binary" for a file with a NUL, "UTF-16" or "UTF-32" for one with such a byte order mark, and
	// "not UTF-8" for any other.
	Kind string
	// Line is where that was found, counted from 1.
	Line int
}

func (e *NotTextError) Error() string {
	switch e.Kind {
	case "binary":
		return fmt.Sprintf("%s is a binary file: line %d has a NUL", e.Path, e.Line)
	case "UTF-16", "UTF-32":
		return fmt.Sprintf("%s is %s: convert it to UTF-8", e.Path, e.Kind)
	default:
		return fmt.Sprintf("%s is not UTF-8 in line %d: convert it to UTF-8", e.Path, e.Line)
	}
}

// HardLinkError: a file that has other names, maybe outside the roots, and is not to be changed in place (C12).
type HardLinkError struct {
	Path string
	// Links is how many names it has.
	Links uint64
}

func (e *HardLinkError) Error() string {
	return fmt.Sprintf("%s has %d hard links, and would change under all of these names: write it as a whole, which makes a new file",
		e.Path, e.Links)
}

// ProtectedError: something that is not to be removed, moved or replaced, because the session needs it as it is.
type ProtectedError struct {
	Path string
	// Dir is the root, or the denied directory, that it is or holds.
	Dir Dir
}

func (e *ProtectedError) Error() string {
	return fmt.Sprintf("%s stays where it is: it is, or holds, %s, which the session's roots or its policy name", e.Path, e.Dir)
}

// LeftoverError: something was moved to another file system, and what is left at its old place could not be removed.
type LeftoverError struct {
	Path string
	// At is where that is.
	At  Ref
	Err error
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("%s was moved, but not all of it could be removed: delete %s (%v)", e.Path, e.At.Path(), e.Err)
}

// Unwrap is what the system said.
func (e *LeftoverError) Unwrap() error { return e.Err }

// StrandedError: something was not moved to another file system after all, and cannot have its name back, because
// something else has taken it meanwhile.
type StrandedError struct {
	Path string
	// At is where it is, complete.
	At Ref
	// Err is why it was not moved.
	Err error
}

func (e *StrandedError) Error() string {
	return fmt.Sprintf("%s was not moved, and something else has its name by now: it is at %s (%v)", e.Path, e.At.Path(), e.Err)
}

// Unwrap is why it was not moved.
func (e *StrandedError) Unwrap() error { return e.Err }

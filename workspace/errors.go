package workspace

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by operations on a closed Workspace.
var ErrClosed = errors.New("the session's workspace is closed")

// OutsideError: a path that does not lie in the workspace, or whose way leaves it.
type OutsideError struct {
	// Path is the path as it was asked for.
	Path string
	// Why names the step that leaves the roots, in a person's words.
	Why string
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s is outside the session's roots: %s", e.Path, e.Why)
}

// DeniedError: a path that the user's policy refuses.
type DeniedError struct {
	Path string
	// By is the denied directory that holds it.
	By Dir
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s is refused by policy: %s is denied", e.Path, e.By)
}

// SpecialFileError: something that is neither a regular file nor a directory (C6).
type SpecialFileError struct {
	Path string
	// Kind is "fifo", "socket", "device" or "irregular file".
	Kind string
}

func (e *SpecialFileError) Error() string {
	return fmt.Sprintf("%s is a %s, not a regular file", e.Path, e.Kind)
}

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

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
	return fmt.Sprintf("%s is a %s, not a file that can be read", e.Path, e.Kind)
}

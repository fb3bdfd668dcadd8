package workspace

import (
	"fmt"
	"strings"
	"syscall"
)

// OutsideError: a path that does not lie in the workspace, or whose way leaves it (A23).
type OutsideError struct {
	// Path is the path as it was asked for.
	Path string
	// Link is the real path of the link that leads out, "" if the path itself does.
	Link string
	// Why names the step that leaves the roots, in a person's words.
	Why string
	// Roots are the session's roots.
	Roots Roots
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s is outside the session's roots: %s (%s)", e.Path, e.Why, few(e.Roots))
}

// fewRoots is how many roots a message names.
const fewRoots = 4

// few names the roots, or the first of many.
func few(roots Roots) string {
	var paths []string
	for i, dir := range roots.All() {
		if i == fewRoots {
			return fmt.Sprintf("the roots are %s and %d more", strings.Join(paths, ", "), roots.Len()-i)
		}
		paths = append(paths, dir.path)
	}
	if len(paths) == 1 {
		return "the only root is " + paths[0]
	}
	return "the roots are " + strings.Join(paths, ", ")
}

// MountError: something on a mounted file system that does not belong to the session (C7).
type MountError struct {
	Path string
	// Why says what is wrong with it, and what to do.
	Why error
}

func (e *MountError) Error() string { return fmt.Sprintf("%s cannot be reached: %s", e.Path, e.Why) }

// TooManyLinksError: a path that leads through more links than the system would follow, or in a circle.
// It is [syscall.ELOOP] to errors.Is.
type TooManyLinksError struct {
	Path string
	// Link is the real path of the link that was one too many.
	Link string
	// Limit is how many are followed.
	Limit int
}

func (e *TooManyLinksError) Error() string {
	return fmt.Sprintf("%s leads through more than %d links, maybe in a circle: the last was %s", e.Path, e.Limit, e.Link)
}

// Is reports whether target is syscall.ELOOP.
func (e *TooManyLinksError) Is(target error) bool { return target == syscall.ELOOP }

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

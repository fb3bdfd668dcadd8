package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// ErrClosed is returned by operations on a closed Workspace.
var ErrClosed = errors.New("the session's workspace is closed: " +
	"its folders have changed or the session has ended, so ask again")

// maxRootErrors is the most errors in a RootErrors, so that a list of a million bad paths does not
// result in a million errors.
const maxRootErrors = 100

// RootErrors lists what is wrong with a root set, in the order of the roots.
type RootErrors []RootError

// Error describes the first error and says how many more there are.
func (e RootErrors) Error() string {
	switch more := len(e) - 1; {
	case more >= maxRootErrors-1:
		return fmt.Sprintf("%v (and at least %d more)", e[0], more)
	case more > 0:
		return fmt.Sprintf("%v (and %d more)", e[0], more)
	default:
		return e[0].Error()
	}
}

// err returns e as an error, nil if it is empty.
func (e RootErrors) err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// RootError says why a directory cannot be a root.
type RootError struct {
	// Root is the position of the directory in the list it came from, duplicates included: 0 is
	// cwd. It is -1 for an error about the set as a whole.
	Root int
	// Path is the directory, "" for the set as a whole.
	Path   string
	Reason Reason
	// Detail is the limit for ReasonTooMany, why for ReasonUnreadable, and for
	// ReasonDenied the denied directory, if there is one.
	Detail string
	// Allowed are the directories of which ReasonDenied without a Detail demands one.
	Allowed []Dir
}

// Reason says what is wrong with a directory or root set.
type Reason string

// The reasons of a [RootError].
const (
	ReasonEmpty        Reason = "empty"         // the path is ""
	ReasonRelative     Reason = "relative"      // the path is not absolute on this platform
	ReasonNUL          Reason = "nul"           // the path contains a NUL character
	ReasonEncoding     Reason = "encoding"      // the path is not UTF-8
	ReasonTooMany      Reason = "too_many"      // there are more roots than Options.MaxRoots
	ReasonMissing      Reason = "missing"       // the directory does not exist
	ReasonNotDirectory Reason = "not_directory" // the path is not a directory
	ReasonUnreadable   Reason = "unreadable"    // the directory cannot be opened
	ReasonDenied       Reason = "denied"        // the policy denies the directory
)

func (e RootError) Error() string {
	if e.Root < 0 {
		return e.Problem()
	}
	return fmt.Sprintf("folder %d %q %s", e.Root, e.Path, e.Problem())
}

// Problem says what is wrong and what to do, as the end of a sentence that begins with the path.
func (e RootError) Problem() string {
	problem, more := e.ProblemParts()
	if more == "" {
		return problem
	}
	return problem + ": " + more
}

// problems has for each reason what is wrong, and why that is or what to do.
var problems = map[Reason][2]string{
	ReasonEmpty:        {"is empty", "give an absolute path"},
	ReasonRelative:     {"is not absolute", "give an absolute path"},
	ReasonNUL:          {"contains a NUL character", "no path can"},
	ReasonEncoding:     {"is not valid UTF-8", ""},
	ReasonTooMany:      {"too many folders", "the limit is "},
	ReasonMissing:      {"does not exist", "create the folder or give another one"},
	ReasonNotDirectory: {"is not a folder", "give a folder"},
	ReasonUnreadable:   {"cannot be opened", ""},
	ReasonDenied: {"is refused by policy",
		"it is in none of the folders that you may open"},
}

// ProblemParts returns the parts of [RootError.Problem]: what is wrong, and why that is or what to
// do. The second part may be "".
func (e RootError) ProblemParts() (problem, more string) {
	parts := problems[e.Reason]
	switch {
	case e.Reason == ReasonDenied && e.Detail != "":
		return parts[0], e.Detail + " is denied; give another folder"
	case e.Reason == ReasonDenied:
		return parts[0], parts[1] + e.allowed()
	default:
		return parts[0], parts[1] + e.Detail
	}
}

// allowed names the directories that are allowed, as the end of a sentence.
func (e RootError) allowed() string {
	if len(e.Allowed) == 0 {
		return ""
	}
	const longest = 500
	names := text.JoinFunc(e.Allowed, ", ", func(dir Dir) string { return text.Path(dir.path) })
	return ": " + text.Line(names, longest)
}

// TooLargeError is returned for a file that is too large to write.
type TooLargeError struct {
	Path string
	// Size and Limit are in bytes.
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: %d bytes are too many to write: the limit is %d",
		e.Path, e.Size, e.Limit)
}

// MovedError is returned for a path that no longer points where it did.
type MovedError struct {
	Path     string
	Was, Now Ref
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("%s now leads to %s instead of %s", e.Path, e.Now.Path(), e.Was.Path())
}

// ChangedError is returned for a file that has changed or is gone.
type ChangedError struct{ Path string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s has changed since it was read", e.Path)
}

// LossError is returned for a file that cannot be replaced without a loss that is not permitted.
type LossError struct {
	Path   string
	Losses Losses
}

func (e *LossError) Error() string {
	return e.Path + " " + e.Losses.String() + " if it is replaced"
}

// LimitError is returned for something that exceeds a limit of the operation.
type LimitError struct {
	Path  string
	What  string // what is limited, such as "entries"
	Limit int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: more than %d %s", e.Path, e.Limit, e.What)
}

// NotTextError is returned for a file that is not UTF-8 text.
type NotTextError struct {
	Path string
	// Kind is "binary" for a file with a NUL, "UTF-16" or "UTF-32" for one with that byte order
	// mark, and "not UTF-8" for any other.
	Kind string
	Line int // its line, counted from 1
}

func (e *NotTextError) Error() string {
	switch e.Kind {
	case "binary":
		return fmt.Sprintf("%s is a binary file: line %d contains a NUL", e.Path, e.Line)
	case "UTF-16", "UTF-32":
		return fmt.Sprintf("%s is %s: convert it to UTF-8", e.Path, e.Kind)
	default:
		return fmt.Sprintf("%s is not UTF-8 in line %d: convert it to UTF-8", e.Path, e.Line)
	}
}

// ProtectedError is returned for something that must not be removed or moved: a root, a denied
// directory, or a directory that contains one.
type ProtectedError struct {
	Path string
	Dir  Dir // the root or denied directory
}

func (e *ProtectedError) Error() string {
	return fmt.Sprintf("%s cannot be moved or removed: it is or contains %s, "+
		"which is a folder of the session or denied by policy", e.Path, e.Dir)
}

// OutsideError is returned for a path that is not in the workspace, or that leads through something
// outside it.
type OutsideError struct {
	Path  string
	Link  string // the real path of the link that leads out, "" if the path itself does
	Why   string // which step leaves the roots, for a person
	Roots Roots  // the workspace's roots
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s is outside the session's folders: %s (%s)", e.Path, e.Why, few(e.Roots))
}

// fewRoots is the most roots that an error message names.
const fewRoots = 4

// few lists the roots, or the first of many.
func few(roots Roots) string {
	var paths []string
	for i, dir := range roots.All() {
		if i == fewRoots {
			return fmt.Sprintf("the folders are %s and %d more", strings.Join(paths, ", "),
				roots.Len()-i)
		}
		paths = append(paths, dir.path)
	}
	if len(paths) == 1 {
		return "the only folder is " + paths[0]
	}
	return "the folders are " + strings.Join(paths, ", ")
}

// ReplacedError is returned for a path in a root whose directory was replaced, if the directory
// that was opened has nothing at the path. It matches [fs.ErrNotExist].
type ReplacedError struct {
	Path string
	Dir  Dir // the root
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("%s: the folder %s was replaced after the session started: "+
		"load the session again", e.Path, e.Dir)
}

// Is reports whether target is [fs.ErrNotExist].
func (e *ReplacedError) Is(target error) bool { return target == fs.ErrNotExist }

// DeniedError is returned for a path that the policy denies.
type DeniedError struct {
	Path string
	By   Dir // the denied directory
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s is refused by policy: %s is denied", e.Path, e.By)
}

// RefusedError is returned for an access that the check of [Workspace.Checked] refuses.
type RefusedError struct {
	Path string
	Why  error // the error of the check
}

func (e *RefusedError) Error() string { return e.Path + ": " + e.Why.Error() }

func (e *RefusedError) Unwrap() error { return e.Why }

// SpecialFileError is returned for something that is neither a regular file nor a directory.
type SpecialFileError struct {
	Path string
	Kind string // "fifo", "socket", "device" or "irregular file"
}

func (e *SpecialFileError) Error() string {
	return fmt.Sprintf("%s is a %s, not a regular file", e.Path, e.Kind)
}

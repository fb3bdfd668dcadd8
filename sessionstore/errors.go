package sessionstore

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by a Store or a Recorder that was closed.
var ErrClosed = errors.New("the session store is closed")

// NotFoundError: there is no such session, or it was deleted.
type NotFoundError struct{ ID ID }

func (e *NotFoundError) Error() string { return fmt.Sprintf("no session %q", string(e.ID)) }

// ExistsError: the id of a new session is taken.
type ExistsError struct{ ID ID }

func (e *ExistsError) Error() string { return fmt.Sprintf("session %q exists", string(e.ID)) }

// FencedError: the lease is no longer the newest.
type FencedError struct {
	ID ID
	// Held and Current are the generations of the lease and of the session.
	Held, Current int64
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("session %q was opened in another window; load it again", string(e.ID))
}

// ReplacedError: the history that was being read was replaced by an activation; read it again.
type ReplacedError struct{ ID ID }

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("the history of session %q was replaced while it was read", string(e.ID))
}

// CursorError: the cursor is malformed, or was made with other filters.
type CursorError struct{ Cursor Cursor }

func (e *CursorError) Error() string {
	return "this cursor does not belong to this list; start again without one"
}

// UnavailableError: the store's medium cannot be used.
type UnavailableError struct {
	// Path is the file or directory concerned.
	Path string
	// Hint tells a person what to do.
	Hint string
	// Err is the cause.
	Err error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("session store %s: %v; %s", e.Path, e.Err, e.Hint)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// DraftError: an activation was given a draft that is not of this store and session, or was used or discarded before,
// or was left alone for so long that the store dropped it.
type DraftError struct{ ID ID }

func (e *DraftError) Error() string {
	return "the new history of session " + string(e.ID) + " is not there any more; load it again"
}

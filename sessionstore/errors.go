package sessionstore

import (
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/internal/text"
)

var (
	// ErrClosed is returned by a Store or a Recorder that was closed.
	ErrClosed = errors.New("the session store is closed")
	// ErrExists is returned if the id of a new session is taken.
	ErrExists = errors.New("a session with this id exists")
	// ErrDraft is returned for a draft that belongs to another store or session, that was used or
	// discarded, or that the store dropped because it was unused for too long.
	ErrDraft = errors.New("the new part of the history no longer exists; load the session again")
)

// NotFoundError is returned if a session does not exist or was deleted.
type NotFoundError struct{ ID ID }

func (e *NotFoundError) Error() string { return fmt.Sprintf("no session %q", string(e.ID)) }

// FencedError is returned for a lease that is not the newest of its session.
type FencedError struct {
	ID ID
	// Held and Current are the generations of the lease and of the session.
	Held, Current int64
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("session %q was opened in another window; load it again", string(e.ID))
}

// QuotaError is returned for what would exceed the limit of an owner, see [Shared.Limit].
type QuotaError struct{ Limit int }

func (e *QuotaError) Error() string {
	return fmt.Sprintf("your sessions take up all of the %s that the server allows you: "+
		"delete some of them first", text.Size(e.Limit))
}

// CursorError is returned for a cursor that is malformed or was made with other filters.
type CursorError struct{ Cursor Cursor }

func (e *CursorError) Error() string {
	return "this cursor does not belong to this list; start again without one"
}

// UnavailableError is returned if the medium of a store cannot be used.
type UnavailableError struct {
	// Medium names the file, the directory or the address of the server.
	Medium string
	// Hint says what a person can do about it.
	Hint string
	// Err is the cause.
	Err error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("session store %s: %v; %s", e.Medium, e.Err, e.Hint)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

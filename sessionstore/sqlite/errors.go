package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// code returns SQLite's primary result code in err's tree, or 0.
func code(err error) int {
	var e *driver.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// isLocked reports whether err is due to a lock of another process, so that trying again may help.
func isLocked(err error) bool {
	return errors.Is(err, errLocked) || code(err) == sqlite3.SQLITE_BUSY || code(err) == sqlite3.SQLITE_LOCKED
}

// explain turns err into one of the errors of [sessionstore.Store].
func (s *Store) explain(err error) error {
	if err == nil || describesCall(err) {
		return err
	}
	if errors.Is(err, sql.ErrConnDone) {
		return sessionstore.ErrClosed
	}
	path, hint := s.options.Dir, hintFor(err)
	if code(err) != 0 || errors.As(err, new(*foreignError)) || errors.As(err, new(*newerError)) {
		path = filepath.Join(path, fileName)
	}
	return &sessionstore.UnavailableError{Path: path, Hint: hint, Err: err}
}

// describesCall reports whether err is about the call, not about the medium.
func describesCall(err error) bool {
	for _, target := range []error{
		context.Canceled, context.DeadlineExceeded,
		sessionstore.ErrClosed, sessionstore.ErrExists, sessionstore.ErrReplaced, sessionstore.ErrDraft,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return errors.As(err, new(*sessionstore.NotFoundError)) || errors.As(err, new(*sessionstore.FencedError)) ||
		errors.As(err, new(*sessionstore.UnavailableError))
}

// The hints of errors tell a person what to do.
const (
	hintPermissions = "make the directory and the file readable and writable for you, or choose another state directory"
	hintSpace       = "free some space on its disk"
	hintRepair      = "it is damaged and was not changed; run \"acp-agent sessions repair\""
	hintForeign     = "move it away, or choose another state directory"
	hintNewer       = "update acp-agent, or choose another state directory"
	hintBusy        = "another program keeps it locked; end programs that hang, then try again"
	hintDisk        = "check the disk and its file system, then try again"
)

func hintFor(err error) string {
	switch {
	case errors.As(err, new(*foreignError)):
		return hintForeign
	case errors.As(err, new(*newerError)):
		return hintNewer
	case errors.As(err, new(*damageError)):
		return hintRepair
	case errors.Is(err, errLocked):
		return hintBusy
	case errors.Is(err, syscall.ENOSPC):
		return hintSpace
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return hintPermissions
	}
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return hintBusy
	case sqlite3.SQLITE_FULL:
		return hintSpace
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return hintPermissions
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA,
		sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FORMAT:
		return hintRepair
	}
	return hintDisk
}

// damageError reports a row that this program cannot have written.
type damageError struct{ err error }

func (e *damageError) Error() string { return "it contains an invalid row: " + e.err.Error() }
func (e *damageError) Unwrap() error { return e.err }

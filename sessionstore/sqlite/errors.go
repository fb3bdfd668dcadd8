package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
)

// code returns SQLite's primary result code in err's tree, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isLocked reports whether err is due to a lock of another process, so that trying again may help.
func isLocked(err error) bool {
	return code(err) == sqlite3.SQLITE_BUSY || code(err) == sqlite3.SQLITE_LOCKED
}

// Explain implements [core.Database].
func (f *file) Explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, sql.ErrConnDone) {
		return sessionstore.ErrClosed
	}
	path := f.options.Dir
	if f.diskIsFull(err) {
		err = &fullError{err, !f.inMemory() && hasNoInodes(f.options.Dir)}
	}
	hint := hintFor(err)
	if hint == hintBusy {
		if holder := lockHolder(f.options.Dir); holder != "" {
			hint = holder + " keeps it locked; end that program, then try again"
		}
	}
	if code(err) != 0 || isOther(err) {
		path = filepath.Join(path, fileName)
	}
	if wrong, ok := errors.AsType[*fs.PathError](err); ok && wrong.Path == path {
		err = wrong.Err
	}
	return &sessionstore.UnavailableError{Medium: path, Hint: hint, Err: err}
}

// isOther reports whether err is about a file that is not damaged but not for this program.
func isOther(err error) bool {
	return errors.As(err, new(*foreignError)) || errors.As(err, new(*core.VersionError)) ||
		errors.Is(err, errReplaced)
}

// diskIsFull reports whether err is due to a full disk or quota. SQLite says so only for some
// failures: creating a file, making the shared memory longer or synchronizing fails with a code
// that has other causes too. Then a file is written to find out.
func (f *file) diskIsFull(err error) bool {
	switch code(err) {
	case 0:
		return isFull(err)
	case sqlite3.SQLITE_FULL:
		return true
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return !f.inMemory() && isFull(tryWriting(f.options.Dir))
	}
	return false
}

// isFull reports whether err is the system's error for a full disk or quota.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// tryWriting writes a file that is as long as SQLite's shared memory, and removes it.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, trialPrefix)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 64<<10))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// fullError reports a full disk.
type fullError struct {
	err    error
	inodes bool // there is space, but the file system can hold no more files
}

func (e *fullError) Error() string {
	if e.inodes {
		return "the file system can hold no more files (it has no free inodes)"
	}
	return "the disk is full"
}

func (e *fullError) Unwrap() error { return e.err }

// The hints of errors are what a person can do about them.
const (
	hintPermissions = "make the directory and the file readable and writable for you, " +
		"or choose another state directory"
	hintElsewhere = "choose another state directory"
	hintSpace     = "free some space on its disk"
	hintInodes    = "remove some files on its disk"
	hintRepair    = "it is damaged and was not changed; run \"acp-agent sessions repair\", " +
		"with the same --state-dir if you use one"
	hintForeign  = "move it away, or choose another state directory"
	hintNewer    = "update acp-agent, or choose another state directory"
	hintBusy     = "another program keeps it locked; end programs that hang, then try again"
	hintReplaced = "move it back, or end this program: what it stored since then is lost"
	hintDisk     = "check the disk and its file system, then try again"
)

func hintFor(err error) string {
	if full, ok := errors.AsType[*fullError](err); ok && full.inodes {
		return hintInodes
	}
	if other, ok := errors.AsType[*core.VersionError](err); ok && other.IsNewer() {
		return hintNewer
	}
	switch {
	case errors.As(err, new(*foreignError)), errors.As(err, new(*core.VersionError)):
		return hintForeign
	case errors.Is(err, errReplaced):
		return hintReplaced
	case errors.As(err, new(*core.DamageError)):
		return hintRepair
	case errors.As(err, new(*fullError)):
		return hintSpace
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return hintPermissions
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
		return hintElsewhere
	}
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return hintBusy
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return hintPermissions
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA,
		sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FORMAT:
		return hintRepair
	}
	return hintDisk
}

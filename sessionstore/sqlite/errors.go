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
	if code(err) != 0 || errors.Is(err, errForeign) || errors.Is(err, core.ErrVersion) ||
		errors.Is(err, errReplaced) { // it is about the file
		path = filepath.Join(path, fileName)
	}
	if f.diskIsFull(err) {
		err = errFull
	}
	hint := f.hintFor(err)
	if wrong, ok := errors.AsType[*fs.PathError](err); ok && wrong.Path == path {
		err = wrong.Err
	}
	return &sessionstore.UnavailableError{Medium: path, Hint: hint, Err: err}
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

// tryWriting writes a file as long as SQLite's shared memory. A killed program leaves none.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, fileName+"-trial")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_ = os.Remove(f.Name()) // on Windows it has to be closed first
	_, err = f.Write(make([]byte, 64<<10))
	return errors.Join(err, f.Close())
}

// errFull reports a full disk.
var errFull = errors.New("the disk is full")

// hintDamaged tells a person what to do about a damaged file.
const hintDamaged = "it is damaged and was not changed; run \"acp-agent sessions repair\", " +
	"with the same --state-dir if you use one"

// hintPermissions tells a person what to do about files that cannot be used.
const hintPermissions = "make the directory and the file readable and writable for you, " +
	"or choose another state directory"

// hintFor returns what a person can do about an error.
func (f *file) hintFor(err error) string {
	switch {
	case errors.Is(err, core.ErrVersion):
		return "update acp-agent, move it away, or choose another state directory"
	case errors.Is(err, errForeign):
		return "move it away, or choose another state directory"
	case errors.Is(err, errReplaced):
		return "move it back, or end this program: what it stored since then is lost"
	case errors.Is(err, core.ErrDamage):
		return hintDamaged
	case errors.Is(err, errFull):
		return "free some space on its disk, or remove files if it can hold no more of them"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return hintPermissions
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
		return "choose another state directory"
	}
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		if holder := lockHolder(f.options.Dir); holder != "" {
			return holder + " keeps it locked; end that program, then try again"
		}
		return "another program keeps it locked; end programs that hang, then try again"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return hintPermissions
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA,
		sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FORMAT:
		return hintDamaged
	}
	return "the system did not let acp-agent write: check your quota, ulimit -f and the disk, " +
		"then try again"
}

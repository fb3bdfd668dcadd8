package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	driver "modernc.org/sqlite"
)

const (
	fileName     = "sessions.db"
	lockFileName = "sessions.lock"
	// readers is how many reads run at once in a process.
	readers = 2
	// applicationID marks the file as ours, for file(1) and for us: "acpS".
	applicationID = 0x61637053
)

// database is an open file.
type database struct {
	writer, reader *sql.DB
}

// openDatabase opens the store's file, creates it if it is missing, and brings its schema up to date.
func openDatabase(ctx context.Context, o Options, steps []step) (*database, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lockFile(filepath.Join(dir, lockFileName))
	if err != nil {
		return nil, err
	}
	defer unlock()
	path := filepath.Join(dir, fileName)
	if err := createFile(path); err != nil {
		return nil, err
	}
	journal := o.Journal
	if journal == JournalAuto {
		journal = journalFor(dir)
	}
	db, err := connect(path, journal)
	if err != nil {
		return nil, err
	}
	if err := db.prepare(ctx, journal, steps); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

func journalFor(dir string) Journal {
	if onNetwork(dir) {
		return JournalRollback
	}
	return JournalWAL
}

// createFile makes an empty file for the user alone, if there is none. It is closed again before SQLite
// opens it, for closing it later would drop SQLite's locks.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func connect(path string, journal Journal) (*database, error) {
	synchronous := "NORMAL"
	if journal == JournalRollback {
		synchronous = "FULL"
	}
	// The waiting time comes first: the others may have to wait already. None of them writes.
	common := []string{
		"busy_timeout(500)", "secure_delete(ON)", "foreign_keys(ON)",
		"trusted_schema(OFF)", "cell_size_check(ON)", "synchronous(" + synchronous + ")",
	}
	writer, err := openPool(dsn(path, "immediate", append(common, "journal_size_limit(4194304)")), 1)
	if err != nil {
		return nil, err
	}
	reader, err := openPool(dsn(path, "deferred", append(common, "query_only(ON)")), readers)
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	return &database{writer: writer, reader: reader}, nil
}

// dsn names the file with the settings of a connection. SQLite may not create it: it would do so with
// the permissions of the umask.
func dsn(path, txlock string, pragmas []string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive
	}
	query := url.Values{"mode": {"rw"}, "_txlock": {txlock}, "_dqs": {"0"}, "_pragma": pragmas}
	return (&url.URL{Scheme: "file", Path: path, OmitHost: true, RawQuery: query.Encode()}).String()
}

func openPool(dsn string, size int) (*sql.DB, error) {
	connector, err := driver.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}

// prepare checks that the file is a store that this program may use, and brings it up to date.
func (d *database) prepare(ctx context.Context, journal Journal, steps []step) error {
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx = context.WithoutCancel(ctx)
	if fresh, err := recognise(ctx, conn); err != nil {
		return err
	} else if fresh {
		// This has an effect only before anything is written, the journal's mode included.
		if _, err := conn.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
			return err
		}
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA journal_mode = "+string(journal)); err != nil {
		return err
	}
	return migrate(ctx, conn, steps)
}

// recognise refuses a file that is a database of something else. A fresh one has nothing in it yet.
func recognise(ctx context.Context, conn *sql.Conn) (fresh bool, err error) {
	var id, tables int64
	err = conn.QueryRowContext(ctx, "SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id").
		Scan(&id, &tables)
	if err != nil {
		return false, err
	}
	fresh = id == 0 && tables == 0
	if !fresh && id != applicationID {
		return false, &foreignError{id: id}
	}
	return fresh, nil
}

// foreignError: a SQLite file that is not ours.
type foreignError struct{ id int64 }

func (e *foreignError) Error() string {
	return fmt.Sprintf("this is another program's database (application id %#x)", e.id)
}

// close closes the readers first: the last connection to go empties the log, and it must be one that writes.
func (d *database) close() error { return errors.Join(d.reader.Close(), d.writer.Close()) }

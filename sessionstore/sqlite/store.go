package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	driver "modernc.org/sqlite"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/fair"
)

var (
	_ sessionstore.Shared = (*Store)(nil)
	_ parts               = view{}
)

// parts are the optional parts of a store that a Store has.
type parts interface {
	sessionstore.Archiver
	sessionstore.Importer
	sessionstore.Ledger
	sessionstore.Mover
	sessionstore.Pruner
	sessionstore.Restorer
	sessionstore.Searcher
	sessionstore.Segmenter
	sessionstore.Sizer
}

const (
	fileName     = "sessions.db"
	lockFileName = "sessions.lock"
	// repairPrefix begins the names of directories in which repairs work, and damagedPrefix the
	// names of the damaged files that they keep.
	repairPrefix  = "sessions.repair-"
	damagedPrefix = "sessions.damaged-"
	// trialPrefix begins the names of files that are written to see whether the disk is full.
	trialPrefix = "sessions.trial-"
	// readers is the number of concurrent reads in a process.
	readers = 2
	// applicationID marks the file as a store, for file(1) and for [recognise]: "acpS".
	applicationID = 0x61637053
	// retryPause is the time between two attempts to get a lock that was refused at once.
	retryPause = 5 * time.Millisecond
)

// Options configure a Store.
type Options struct {
	// Dir is the directory of the store's files. If it is missing it is created, accessible to the
	// user only.
	Dir string
	// Retention is how long sessions that were never prompted are kept; 0 means forever. See
	// [Store.Close].
	Retention time.Duration
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
	// Logger receives warnings about the store's files; nil discards them.
	Logger *slog.Logger

	// journal is the journal mode; "" means the write-ahead log, or the rollback journal on a
	// network file system. [journalMemory] needs no Dir.
	journal journal
	// lockTimeout is how long a call waits for other processes before it fails; 0 means 10 seconds.
	lockTimeout time.Duration
	// eraseDelay is the time between a delete and the erasing of its data; 0 means the constant of
	// that name.
	eraseDelay time.Duration
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.lockTimeout = cmp.Or(o.lockTimeout, 10*time.Second)
	o.eraseDelay = cmp.Or(o.eraseDelay, eraseDelay)
	return o
}

// journal is how SQLite makes commits atomic.
type journal string

const (
	// journalWAL is the write-ahead log. It needs memory that the processes share.
	journalWAL journal = "WAL"
	// journalRollback is the rollback journal.
	journalRollback journal = "DELETE"
	// journalMemory is for a database in memory.
	journalMemory journal = "MEMORY"
)

// Exists reports whether dir contains a store.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, fileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// Store is a [sessionstore.Shared] in a SQLite file.
type Store struct {
	*medium
	owner owner
}

// medium is the file, which the stores of all owners share.
type medium struct {
	options Options
	steps   []step

	// using is locked for reading by every call, and for writing by Close.
	using   sync.RWMutex
	life    context.Context
	end     context.CancelFunc
	opening chan struct{} // holds one token, whose owner may open or read db
	db      *database
	writing *fair.Queue // of one writer
	damaged sync.Map    // the keys of sessions whose damage was logged

	// eraseDue has a token if a delete may have left data. background is the goroutine that erases
	// it, which runs while db is open.
	eraseDue   chan struct{}
	background sync.WaitGroup
}

// New returns the store in o.Dir. The first call that needs the files opens or creates them.
func New(o Options) *Store {
	s := &Store{medium: &medium{
		options: o.withDefaults(), steps: steps(), writing: fair.NewQueue(1),
		opening: make(chan struct{}, 1), eraseDue: make(chan struct{}, 1),
	}}
	s.life, s.end = context.WithCancel(context.Background())
	s.opening <- struct{}{}
	return s
}

// NewMemory returns a store in memory, for tests and for hosts that keep nothing. It is not shared
// with other processes, and Close deletes it.
func NewMemory() *Store { return New(Options{journal: journalMemory}) }

// CheckDir returns an error that says why files cannot be written in the store's directory, or nil.
// It changes nothing, and is fast because it does not open the store.
func (s *Store) CheckDir() error {
	if s.inMemory() {
		return nil
	}
	dir, err := filepath.Abs(s.options.Dir)
	if err != nil {
		return s.explain(err)
	}
	for {
		info, err := os.Stat(dir)
		parent := filepath.Dir(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && parent != dir:
			dir = parent // the store creates what is missing
			continue
		case err == nil && !info.IsDir():
			err = &fs.PathError{Op: "stat", Path: dir, Err: syscall.ENOTDIR}
		case err == nil:
			err = checkWritable(dir)
		}
		return s.explain(err)
	}
}

func (s *medium) inMemory() bool { return s.options.journal == journalMemory }

// Dir returns the directory of the store's files, "" in memory.
func (s *Store) Dir() string { return s.options.Dir }

// Close implements [sessionstore.Store]. If the store was used and Options.Retention is set, it
// first prunes the sessions that were never prompted, at most once a day among all processes, for
// about a second. Then it erases what deleted sessions left in the files, for a few seconds at
// most; the next process that opens the store does the rest.
func (s *Store) Close() error {
	s.applyRetention()
	s.end()
	s.using.Lock()
	defer s.using.Unlock()
	s.background.Wait()
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	if !s.inMemory() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = s.erase(ctx, db)
	}
	return s.explain(db.close())
}

// use runs call with the open database, which it opens if necessary. If that fails the next call
// tries again.
func (s *medium) use(ctx context.Context, call func(*database) error) error {
	s.using.RLock()
	defer s.using.RUnlock()
	db, err := s.open(ctx)
	if err != nil {
		return err
	}
	return call(db)
}

func (s *medium) open(ctx context.Context) (*database, error) {
	if s.life.Err() != nil {
		return nil, sessionstore.ErrClosed
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case <-s.opening:
		defer func() { s.opening <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.life.Done():
		return nil, sessionstore.ErrClosed
	}
	if s.db != nil {
		return s.db, nil
	}
	err := s.retry(ctx, func() (err error) {
		s.db, err = openDatabase(ctx, s.options, s.steps)
		return err
	})
	if db := s.db; db != nil {
		s.eraseSoon() // a process may have been killed before it could
		s.background.Go(func() { s.eraseInBackground(db) })
	}
	return s.db, err
}

// read runs do in a read transaction, whose statements see one snapshot.
func (s *medium) read(ctx context.Context, do func(*transaction) error) error {
	return s.use(ctx, func(db *database) error {
		return s.transact(ctx, db.reader, &sql.TxOptions{ReadOnly: true}, do)
	})
}

// write is [medium.write] in the owner's turn.
func (s *Store) write(ctx context.Context, do func(*transaction) error) error {
	return s.writeAs(ctx, string(s.owner), do)
}

// write runs do in a transaction that holds the write lock. It may run do several times.
func (s *medium) write(ctx context.Context, do func(*transaction) error) error {
	return s.writeAs(ctx, "", do)
}

// writeAs is [medium.write]. Owners who write take turns: package sql gives the connection to any
// of the waiting goroutines.
func (s *medium) writeAs(ctx context.Context, owner string, do func(*transaction) error) error {
	return s.use(ctx, func(db *database) error {
		if err := s.writing.Acquire(ctx, owner); err != nil {
			return err
		}
		defer s.writing.Release()
		return s.transact(ctx, db.writer, nil, func(tx *transaction) error {
			if err := permitted(tx, newest(s.steps)); err != nil {
				return err
			}
			return do(tx)
		})
	})
}

func (s *medium) transact(
	ctx context.Context, pool *sql.DB, o *sql.TxOptions, do func(*transaction) error,
) error {
	return s.retry(ctx, func() error {
		conn, err := pool.Conn(ctx)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		defer conn.Close()
		// Interrupting a statement would cost the connection, and a transaction is short.
		return inTransaction(context.WithoutCancel(ctx), conn, o, do)
	})
}

// transaction is a transaction, whose statements end with ctx.
type transaction struct {
	*sql.Tx
	ctx context.Context
}

// inTransaction runs do in a transaction of a connection.
func inTransaction(
	ctx context.Context, conn interface {
		BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
	}, o *sql.TxOptions, do func(*transaction) error,
) error {
	tx, err := conn.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	if err := do(&transaction{tx, ctx}); err != nil {
		if failed := tx.Rollback(); !errors.Is(failed, sql.ErrTxDone) {
			err = errors.Join(err, failed)
		}
		return err
	}
	return tx.Commit()
}

// exec runs a statement without a result.
func (t *transaction) exec(text string, args ...any) error {
	_, err := t.ExecContext(t.ctx, text, args...)
	return err
}

// change runs a statement and returns how many rows it has changed.
func (t *transaction) change(text string, args ...any) (n int64, err error) {
	result, err := t.ExecContext(t.ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row runs a query for one row.
func (t *transaction) row(query string, args ...any) *sql.Row {
	return t.QueryRowContext(t.ctx, query, args...)
}

// query runs a query for rows.
func (t *transaction) query(query string, args ...any) (*sql.Rows, error) {
	return t.QueryContext(t.ctx, query, args...)
}

// each calls do with each row of a query, until it returns an error.
func (t *transaction) each(query string, args []any, do func(*sql.Rows) error) error {
	rows, err := t.query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// retry calls try until it does not fail because of another process, or the lock timeout has
// passed.
func (s *medium) retry(ctx context.Context, try func() error) error {
	deadline := time.Now().Add(s.options.lockTimeout)
	for {
		err := try()
		if !isLocked(err) || time.Now().After(deadline) {
			return s.explain(err)
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.life.Done():
			return sessionstore.ErrClosed
		}
	}
}

// clock returns the time as it is stored, in milliseconds.
func (s *medium) clock() int64 { return s.options.Now().UnixMilli() }

// database is an open file: one connection that writes, and a few that read.
type database struct {
	writer, reader *sql.DB
	path           string // "" in memory
	journal        journal
}

// openDatabase opens or creates the store's file, and migrates it to the newest schema.
func openDatabase(ctx context.Context, o Options, steps []step) (*database, error) {
	if o.journal == journalMemory {
		return prepared(ctx, connectMemory, o, steps)
	}
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
	tidy(dir, o.Logger)
	path := filepath.Join(dir, fileName)
	if err := createFile(path); err != nil {
		return nil, err
	}
	mode := o.journal
	switch {
	case mode != "":
	case onNetwork(dir):
		mode = journalRollback
	default:
		mode = journalWAL
	}
	return prepared(ctx, func() (*database, error) { return connect(path, mode) }, o, steps)
}

// prepared returns the database that connect opens, see [database.prepare].
func prepared(
	ctx context.Context, connect func() (*database, error), o Options, steps []step,
) (*database, error) {
	db, err := connect()
	if err != nil {
		return nil, err
	}
	if err := db.prepare(ctx, steps); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

// createFile creates an empty file, accessible to the user only, unless it exists. The file must be
// closed before SQLite opens it: closing it later would release SQLite's locks.
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

// tidy removes what killed repairs left in dir, and makes the store's files accessible to the user
// only. The caller holds the lock, so no repair is running. Failures are only logged, because the
// store can still be used.
func tidy(dir string, log *slog.Logger) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		log.Warn("cannot look for files that a killed program left", "error", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), repairPrefix), strings.HasPrefix(e.Name(), trialPrefix):
			if err := os.RemoveAll(path); err != nil {
				log.Warn("cannot remove files that a killed program left; remove them yourself",
					"error", err)
			}
		case strings.HasPrefix(e.Name(), fileName), strings.HasPrefix(e.Name(), damagedPrefix):
			makePrivate(path, log)
		}
	}
}

// makePrivate makes a file accessible to the user only, and warns if it was not. It does not open
// the file.
func makePrivate(path string, log *slog.Logger) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 ||
		runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(path, 0o600); err != nil {
		log.Warn("other users can access the session store, and its permissions cannot be changed",
			"mode", info.Mode().Perm(), "error", err)
		return
	}
	log.Warn("other users could read the session store; it is private now",
		"file", path, "mode", info.Mode().Perm())
}

// connectMemory opens a database in memory. It belongs to its only connection, so readers and
// writers take turns.
func connectMemory() (*database, error) {
	pool, err := openPool("file::memory:?_txlock=immediate&_dqs=0"+
		"&_pragma=foreign_keys(ON)&_pragma=trusted_schema(OFF)", 1)
	return &database{writer: pool, reader: pool, journal: journalMemory}, err
}

func connect(path string, mode journal) (*database, error) {
	common := pragmas(mode, 500*time.Millisecond, "ON")
	writing := append(common, "journal_size_limit(4194304)")
	writer, err := openPool(dsn(path, "immediate", writing), 1)
	if err != nil {
		return nil, err
	}
	reader, err := openPool(dsn(path, "deferred", append(common, "query_only(ON)")), readers)
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	return &database{writer: writer, reader: reader, path: path, journal: mode}, nil
}

// pragmas returns the settings of a connection to a file, which waits for locks until timeout.
// secureDelete is the value of that pragma.
func pragmas(mode journal, timeout time.Duration, secureDelete string) []string {
	synchronous := "NORMAL"
	if mode == journalRollback {
		synchronous = "FULL"
	}
	// The timeout comes first because the other settings may have to wait. None of them writes.
	// Temporary data stays in memory, because temporary files are in a directory of the system that
	// a sandbox may not let us write to.
	return []string{
		fmt.Sprintf("busy_timeout(%d)", timeout.Milliseconds()),
		"secure_delete(" + secureDelete + ")", "foreign_keys(ON)", "trusted_schema(OFF)",
		"cell_size_check(ON)", "temp_store(MEMORY)", "synchronous(" + synchronous + ")",
	}
}

// dsn returns the data source name of a file with the settings of a connection. SQLite may not
// create the file, since its permissions would depend on the umask.
func dsn(path, txlock string, pragmas []string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // Windows: a drive letter
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
func (d *database) prepare(ctx context.Context, steps []step) error {
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx = context.WithoutCancel(ctx)
	if fresh, err := recognise(ctx, conn); err != nil {
		return err
	} else if fresh {
		// This has an effect only before the first write, and setting the journal mode is one.
		if _, err := conn.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
			return err
		}
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA journal_mode = "+string(d.journal)); err != nil {
		return err
	}
	return migrate(ctx, conn, steps)
}

// recognise rejects another program's database. An empty one is new.
func recognise(ctx context.Context, conn *sql.Conn) (fresh bool, err error) {
	var id, tables int64
	err = conn.QueryRowContext(ctx,
		"SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id").
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

// foreignError reports a SQLite file of another program.
type foreignError struct{ id int64 }

func (e *foreignError) Error() string {
	return fmt.Sprintf("it is another program's database (application id %#x)", e.id)
}

// close closes the readers first: the last connection that is closed empties the log, so it must be
// able to write.
func (d *database) close() error { return errors.Join(d.reader.Close(), d.writer.Close()) }

// errLocked is returned by lockFile if another process is opening the store.
var errLocked = errors.New("another program is opening it")

// lockFile locks the file at path, which it creates if necessary. It does not wait. The file is
// never removed: two processes could hold locks on different files of that name.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		f.Close()
		return nil, err
	}
	// Closing the file releases the lock.
	return func() { f.Close() }, nil
}

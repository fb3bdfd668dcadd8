package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // the schema
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	driver "modernc.org/sqlite"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
)

const (
	fileName = "sessions.db"
	// repairName is the directory in which repairs work.
	repairName = "sessions.repair"
	// damagedPrefix begins the names of damaged files that were replaced.
	damagedPrefix = "sessions.damaged-"
	// readers is the number of concurrent reads in a process.
	readers = 4
	// applicationID marks the file as a store, for file(1) and for [isNew]: "acpS".
	applicationID = 0x61637053
	// retryPause is the time between two attempts to get a lock that was refused at once.
	retryPause = 5 * time.Millisecond
	// maxVacuum is the size of the content up to which a file is rewritten once something was
	// deleted from it.
	maxVacuum = 64 << 20
	// closeTimeout limits how long purging delays a program that exits.
	closeTimeout = 5 * time.Second
)

// Options configure a Store.
type Options struct {
	// Dir is the directory of the store's files. If it is missing it is created, accessible to the
	// user only.
	Dir string
	// Retention is how long sessions that were never prompted are kept; 0 means forever. They are
	// deleted when a store is closed that was used, for about a second.
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
	// purgeDelay is as in [core.Options].
	purgeDelay time.Duration
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.lockTimeout = cmp.Or(o.lockTimeout, 10*time.Second)
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
	sessionstore.Shared
	core *core.Store // the same
	file *file
}

// New returns the store in o.Dir. The first call that needs the files opens or creates them.
func New(o Options) *Store {
	f := &file{options: o.withDefaults()}
	s := core.New(f, core.Options{Retention: o.Retention, PurgeDelay: o.purgeDelay,
		Logger: f.options.Logger})
	return &Store{Shared: s, core: s, file: f}
}

// NewMemory returns a store in memory, for tests and for hosts that keep nothing. It is not shared
// with other processes, and Close deletes it.
func NewMemory() *Store { return New(Options{journal: journalMemory}) }

// CheckDir returns an error that says why files cannot be created in the store's directory, or nil.
// It changes nothing, and is fast because it does not open the store.
func (s *Store) CheckDir() error {
	dir, err := filepath.Abs(s.Dir())
	if s.file.inMemory() || err != nil {
		return err
	}
	for {
		err, parent := mayWrite(dir), filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return s.file.Explain(err)
		}
		dir = parent // the store creates what is missing
	}
}

// Dir returns the directory of the store's files, "" in memory.
func (s *Store) Dir() string { return s.file.options.Dir }

// file is a [core.Database] in a SQLite file, with connections that write, purge and read.
type file struct {
	options                Options
	path                   string // "" in memory
	journal                journal
	identity               fs.FileInfo // of the file that is open, nil in memory
	writer, purger, reader *sql.DB
}

func (f *file) inMemory() bool { return f.options.journal == journalMemory }

// Traits implements [core.Database].
func (f *file) Traits() core.Traits {
	t := core.Traits{Readers: readers, Writers: 1, CloseTimeout: closeTimeout,
		Next: "UPDATE numbers SET last = last + 1 RETURNING last", AddPassage: addPassage,
		IndexedBy: " INDEXED BY "}
	if f.inMemory() { // all have one connection
		t.Readers, t.Writers = 1, 0
	}
	return t
}

// Transact implements [core.Database].
func (f *file) Transact(
	ctx context.Context, _ string, a core.Access, do func(core.Tx) error,
) error {
	pool, o := f.reader, &sql.TxOptions{ReadOnly: true}
	switch a {
	case core.Write:
		pool, o = f.writer, nil
	case core.Background:
		pool, o = f.purger, nil
	}
	if err := f.checkIdentity(); err != nil {
		return err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// Interrupting a statement would cost the connection, and a transaction is short.
	ctx = context.WithoutCancel(ctx)
	tx, err := conn.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	err = do(&transaction{tx, ctx, f.options.Now().UnixMilli()})
	if err == nil {
		err = f.checkIdentity()
	}
	if err == nil {
		return tx.Commit()
	}
	if failed := tx.Rollback(); !errors.Is(failed, sql.ErrTxDone) {
		err = errors.Join(err, failed)
	}
	return err
}

// errReplaced reports that the file is not at its path any more: what is stored in it would be
// lost.
var errReplaced = errors.New("its file was removed or replaced while it was open, " +
	"and nothing more is stored in it")

// checkIdentity returns an error unless the file that is open is still the one at its path.
func (f *file) checkIdentity() error {
	if f.identity == nil {
		return nil
	}
	present, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(present, f.identity) {
		return errReplaced
	}
	return err
}

// Repeat implements [core.Database].
func (f *file) Repeat(err error, _ int, since time.Duration) (time.Duration, bool) {
	return retryPause, isLocked(err) && since < f.options.lockTimeout
}

// transaction is a [core.Tx], whose statements end with ctx.
type transaction struct {
	*sql.Tx
	ctx context.Context
	now int64
}

// Now implements [core.Tx].
func (t *transaction) Now() (int64, error) { return t.now, nil }

// Exec implements [core.Tx].
func (t *transaction) Exec(text string, each ...[]any) error {
	if len(each) == 0 {
		return nil
	}
	statement, err := t.PrepareContext(t.ctx, text)
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, args := range each {
		if _, err := statement.ExecContext(t.ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Query implements [core.Tx].
func (t *transaction) Query(text string, args ...any) (core.Rows, error) {
	return t.QueryContext(t.ctx, text, args...)
}

// Open implements [core.Database]. It opens or creates the file.
func (f *file) Open(ctx context.Context) (err error) {
	if f.inMemory() {
		err = f.connectMemory()
	} else {
		err = f.find()
	}
	if err == nil {
		err = f.prepare(ctx)
	}
	if err != nil {
		err = errors.Join(err, f.disconnect())
	}
	return err
}

// find connects to the file, and creates it if it is missing.
func (f *file) find() error {
	dir, err := filepath.Abs(f.options.Dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	makeAllPrivate(dir, f.options.Logger)
	f.path = filepath.Join(dir, fileName)
	if err := createFile(f.path); err != nil {
		return err
	}
	if f.identity, err = os.Stat(f.path); err != nil {
		return err
	}
	f.journal = cmp.Or(f.options.journal, journalWAL)
	if f.options.journal == "" && onNetwork(dir) {
		f.journal = journalRollback
	}
	return f.connect()
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

// makeAllPrivate makes the store's files in dir accessible to the user only. Failures are only
// logged, because the store can still be used.
func makeAllPrivate(dir string, log *slog.Logger) {
	if runtime.GOOS == "windows" {
		return
	}
	names, _ := fs.Glob(os.DirFS(dir), "sessions.d*") // the damaged ones too
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := os.Chmod(path, 0o600); err != nil {
			log.Warn("other users can access the session store, and its permissions cannot be "+
				"changed", "mode", info.Mode().Perm(), "error", err)
		} else {
			log.Warn("other users could read the session store; it is private now",
				"file", path, "mode", info.Mode().Perm())
		}
	}
}

// connectMemory opens a database in memory. It belongs to its only connection, so all take turns.
func (f *file) connectMemory() (err error) {
	f.journal = journalMemory
	f.writer, err = openPool("file::memory:?_txlock=immediate&_dqs=0"+
		"&_pragma=foreign_keys(ON)&_pragma=trusted_schema(OFF)", 1)
	f.reader, f.purger = f.writer, f.writer
	return err
}

func (f *file) connect() (err error) {
	synchronous := "NORMAL"
	if f.journal == journalRollback {
		synchronous = "FULL"
	}
	// The timeout comes first because the other settings may have to wait. None of them writes.
	// Temporary data stays in memory, because temporary files are in a directory of the system that
	// a sandbox may not let us write to.
	common := []string{
		"busy_timeout(500)", "secure_delete(ON)", "foreign_keys(ON)", "trusted_schema(OFF)",
		"cell_size_check(ON)", "temp_store(MEMORY)", "synchronous(" + synchronous + ")",
	}
	// A page that leaves the cache before the commit would be written to the log twice.
	writing := append(slices.Clip(common), "journal_size_limit(4194304)", "cache_spill(OFF)")
	if f.writer, err = openPool(dsn(f.path, "immediate", writing), 1); err != nil {
		return err
	}
	// Who purges moves the log afterwards, when nobody waits for that.
	purging := append(writing, "wal_autocheckpoint(0)")
	if f.purger, err = openPool(dsn(f.path, "immediate", purging), 1); err != nil {
		return err
	}
	// There is one more than core asks for, which is for probes.
	f.reader, err = openPool(dsn(f.path, "deferred", append(common, "query_only(ON)")), readers+1)
	return err
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

// prepare checks that the file is a store that this program can use, and creates the tables of a
// new one.
func (f *file) prepare(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	fresh, err := isNew(ctx, f.writer)
	if err != nil {
		return err
	}
	// The size of pages is that of a new file. Most segments fit into larger ones than usual.
	_, err = f.writer.ExecContext(ctx, "PRAGMA page_size = 8192; PRAGMA journal_mode = "+
		string(f.journal))
	if err != nil || !fresh {
		return err
	}
	return f.Transact(ctx, "", core.Write, func(tx core.Tx) error {
		return create(ctx, tx.(*transaction))
	})
}

//go:embed schema.sql
var schema string

// create creates the tables, unless another process that opened the file at the same time has done
// so.
func create(ctx context.Context, tx *transaction) error {
	if fresh, err := isNew(ctx, tx); err != nil || !fresh {
		return err
	}
	_, err := tx.ExecContext(ctx, core.Schema("INTEGER PRIMARY KEY", "text", "blob")+schema+
		fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", core.Version,
			applicationID))
	return err
}

// errForeign reports a SQLite file of another program.
var errForeign = errors.New("it is another program's database")

// isNew reports whether a database is empty. It rejects that of another program, and of another
// version of this one.
func isNew(ctx context.Context, in interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (fresh bool, err error) {
	var id, version, objects int
	err = in.QueryRowContext(ctx, "SELECT application_id, user_version, (SELECT count(*) FROM "+
		"sqlite_schema) FROM pragma_application_id, pragma_user_version").
		Scan(&id, &version, &objects)
	switch {
	case err != nil:
		return false, err
	case id == 0 && objects == 0:
		return true, nil
	case id != applicationID:
		return false, errForeign
	}
	return false, core.CheckVersion(version)
}

// Close implements [core.Database]. The last process to close the file removes the traces that
// deleted data has left in it.
func (f *file) Close() error {
	if f.inMemory() {
		return f.disconnect()
	}
	err := errors.Join(f.reader.Close(), f.purger.Close())
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if failed := f.vacuum(ctx); failed != nil && !isLocked(failed) {
		f.options.Logger.Warn("cannot remove the traces of deleted sessions from the file; "+
			"the next program tries it again", "error", failed)
	}
	return errors.Join(err, f.writer.Close())
}

// disconnect closes the readers first: the last connection that is closed empties the log, so it
// must be able to write.
func (f *file) disconnect() (err error) {
	for _, pool := range []*sql.DB{f.reader, f.purger, f.writer} {
		if pool != nil {
			err = errors.Join(err, pool.Close())
		}
	}
	return err
}

// vacuum rewrites the file if deleted data may have left traces in it, nobody else has it open,
// and that does not take long: SQLite moves rows from one page to another without overwriting the
// place where they were.
func (f *file) vacuum(ctx context.Context) error {
	var traces bool
	var content int64
	row := f.writer.QueryRowContext(ctx,
		"SELECT traces, (page_count - freelist_count) * page_size "+
			"FROM numbers, pragma_page_count, pragma_freelist_count, pragma_page_size")
	if err := row.Scan(&traces, &content); err != nil || !traces || content > maxVacuum {
		return err
	}
	// Leaving the log fails if another process has the file open. The next one that opens it
	// returns to it. SQLite shortens the file after it has deleted the journal, so that must be on
	// the disk: with the old journal again the file could not be read.
	for _, text := range []string{"PRAGMA busy_timeout = 0", "PRAGMA journal_mode = DELETE",
		"PRAGMA synchronous = EXTRA", "VACUUM", "UPDATE numbers SET traces = 0"} {
		if _, err := f.writer.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// Purged implements [core.Database]. It moves the log into the file, so that no writer has to, and
// empties it in the end, because it has old pages.
func (f *file) Purged(ctx context.Context, done bool) error {
	// logPages is the length of the log up to which emptying it is a short piece of work.
	const logPages, longest = 64, 50 * time.Millisecond
	move := func(mode string) (left int, err error) {
		var busy, length, moved int
		row := f.purger.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")")
		if err = row.Scan(&busy, &length, &moved); isLocked(err) || busy != 0 {
			return math.MaxInt, nil
		}
		return length - moved, err
	}
	for wait := time.Millisecond; f.journal == journalWAL; wait = min(2*wait, longest) {
		left, err := move("PASSIVE") // this does not hold the write lock
		if err != nil || !done {
			return err
		}
		if left <= logPages {
			if left, err = move("TRUNCATE"); err != nil || left == 0 {
				return err
			}
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

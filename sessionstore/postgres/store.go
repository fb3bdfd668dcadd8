package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/acp-agent/acp-agent/internal/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/fair"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
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
	sessionstore.Watcher
}

// attempts is how often a transaction is tried that fails because of others.
const attempts = 10

// defaultSchema is the schema of the tables, unless the address has a search_path.
const defaultSchema = "acp_agent"

// now is the time as it is stored, in milliseconds.
const now = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint"

// Options configure a Store.
type Options struct {
	// Address is a URL such as postgres://user@host/database, or a connection string, as of libpq.
	Address string
	// Retention is how long sessions that were never prompted are kept; 0 means forever. See
	// [Store.Close].
	Retention time.Duration
}

// Store is a [sessionstore.Shared] in a PostgreSQL database.
type Store struct {
	*database
	owner string
}

// database is what the stores of all owners share.
type database struct {
	config    *pgxpool.Config
	schema    string
	retention time.Duration
	steps     []step
	watches   watches
	turns     *fair.Queue // for the connections of pool

	// using is locked for reading by every call, and for writing by Close.
	using   sync.RWMutex
	closed  bool
	opening chan struct{} // holds one token, whose owner may open or read pool
	pool    *pgxpool.Pool
}

// longestLoss is how long the database may be unreachable before calls fail: as long as a
// connection that is idle is kept.
const longestLoss = 30 * time.Second

// closeTimeout limits how long a database that does not answer delays a program that exits.
const closeTimeout = time.Second

// New returns the store at an address. The first call connects. Because the address may have a
// password, an error does not contain it.
func New(o Options) (*Store, error) {
	address := strings.TrimSpace(o.Address) // a file with a secret often ends with a line feed
	config, err := pgxpool.ParseConfig(address)
	if err != nil || misplacesPassword(address) {
		return nil, errors.New("the address of the session store is not valid; give one such as " +
			"postgres://USER@HOST/DATABASE, with %40 for @ and %2F for / in a password")
	}
	d := &database{config: config, retention: o.Retention, steps: steps(),
		turns: fair.NewQueue(int(config.MaxConns)), opening: make(chan struct{}, 1)}
	d.opening <- struct{}{}
	settings := config.ConnConfig.RuntimeParams
	for name, value := range map[string]string{
		"search_path":      defaultSchema,
		"application_name": "acp-agent",
		// A server that hangs must not hold locks that others wait for.
		"lock_timeout":                        "10s",
		"idle_in_transaction_session_timeout": "30s",
	} {
		if settings[name] == "" {
			settings[name] = value
		}
	}
	settings["client_encoding"] = "UTF8" // the user or the database may have another default
	d.schema = settings["search_path"]
	if strings.Trim(d.schema, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
		return nil, errors.New("the search_path in the address of the session store must be one " +
			"schema, of lower-case letters, digits and _")
	}
	connection := config.ConnConfig
	connection.ConnectTimeout = cmp.Or(connection.ConnectTimeout, 10*time.Second)
	connection.DialFunc = (&net.Dialer{Control: limitLoss, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}).DialContext
	return &Store{database: d}, nil
}

// misplacesPassword reports whether a part of the password is taken for the host or the database,
// which errors show, because the password has characters that end it.
func misplacesPassword(address string) bool {
	_, rest, isURL := strings.Cut(address, "://")
	if at := strings.IndexAny(rest, "@/"); at >= 0 && rest[at] == '@' {
		rest = rest[at+1:]
	}
	rest, _, _ = strings.Cut(rest, "?")
	return isURL && strings.Contains(rest, "@")
}

// For implements [sessionstore.Shared].
func (s *Store) For(owner string) sessionstore.Store {
	return view{&Store{database: s.database, owner: owner}}
}

// view is the store of an owner. Closing it does not close the database.
type view struct{ *Store }

// Close implements [sessionstore.Store].
func (view) Close() error { return nil }

// Close implements [sessionstore.Store]. If the store was used and Options.Retention is set, it
// first prunes the sessions that were never prompted, at most once a day among all servers, for
// about a second.
func (s *Store) Close() error {
	s.applyRetention()
	s.watches.end()
	s.using.Lock()
	defer s.using.Unlock()
	s.closed = true
	if s.pool != nil {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			s.pool.Close()
		}()
		select {
		case <-closed:
		case <-time.After(closeTimeout): // the driver gives up later
		}
	}
	return nil
}

// String returns the address of the database, without the user and the password.
func (d *database) String() string {
	c := d.config.ConnConfig
	address := fmt.Sprintf("postgres://%s:%d/%s", c.Host, c.Port, c.Database)
	if d.schema != defaultSchema {
		address += "?search_path=" + d.schema
	}
	return address
}

// connectionPause is added to the pause before each further attempt to get a connection from a
// database that has none left. One of the pool may be free then.
const connectionPause = 50 * time.Millisecond

// use calls do with the open database. It repeats do if that fails because of other transactions,
// of a connection that was lost before a commit was sent, or of one that the database did not
// accept.
func (d *database) use(ctx context.Context, do func(*pgxpool.Pool) error) error {
	d.using.RLock()
	defer d.using.RUnlock()
	if d.closed {
		return sessionstore.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	pool, err := d.open(ctx)
	for attempt := 1; err == nil; attempt++ {
		if err = do(pool); err == nil {
			return nil
		}
		if ctx.Err() == nil && isLost(err) { // other connections are lost too
			pool.Reset()
		}
		if attempt < attempts && ctx.Err() == nil && mayRepeat(err) {
			if code(err) == tooManyConnections {
				_ = pause.For(ctx, time.Duration(attempt)*connectionPause)
			}
			err = nil
		}
	}
	return d.explain(ctx, err)
}

func (d *database) open(ctx context.Context) (*pgxpool.Pool, error) {
	select {
	case <-d.opening:
		defer func() { d.opening <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if d.pool != nil {
		return d.pool, nil
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), d.config)
	if err != nil {
		return nil, err
	}
	err = d.checkConnection(ctx, pool)
	if err == nil {
		err = d.migrate(ctx, pool)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	d.pool = pool
	return pool, nil
}

// opened returns the connections to the database, or nil if no call has opened it.
func (d *database) opened() *pgxpool.Pool {
	select {
	case <-d.opening:
		defer func() { d.opening <- struct{}{} }()
		return d.pool
	default:
		return nil
	}
}

// checkConnection reports a database whose text is not UTF-8, and a connection pooler that drops
// the settings of connections: tables would be created in another schema.
func (d *database) checkConnection(ctx context.Context, pool *pgxpool.Pool) error {
	var encoding, path string
	err := pool.QueryRow(ctx, "SELECT current_setting('server_encoding'), "+
		"current_setting('search_path')").Scan(&encoding, &path)
	switch {
	case err != nil:
		return err
	case encoding != "UTF8":
		return errEncoding
	case path != d.schema:
		return errPooler
	}
	return nil
}

//go:embed schema/*.sql
var schema embed.FS

// step migrates the tables from the previous version of the schema.
type step struct {
	version int
	// oldest is the oldest version whose programs may use the tables afterwards.
	oldest int
	sql    string
}

// steps returns the steps to all versions of the schema, the oldest first. The first one creates
// the tables: there was no release before it. Version 5 adds the table of charges.
func steps() []step {
	return []step{
		{version: 4, oldest: 4, sql: schemaText(4)},
		{version: 5, oldest: 4, sql: schemaText(5)},
	}
}

func schemaText(version int) string {
	text, err := schema.ReadFile(fmt.Sprintf("schema/%d.sql", version))
	if err != nil {
		panic("postgres: " + err.Error())
	}
	return string(text)
}

// version returns the newest version of the schema that the program knows.
func (d *database) version() int { return d.steps[len(d.steps)-1].version }

// migrate brings the schema up to date, or creates it. Programs that start at the same time take
// turns.
func (d *database) migrate(ctx context.Context, pool *pgxpool.Pool) error {
	present, err := d.schemaVersion(ctx, pool)
	if err != nil || present >= d.version() {
		return err
	}
	// Each statement has to see what another program has done while this one waited.
	o := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	return pgx.BeginTxFunc(ctx, pool, o, func(tx pgx.Tx) error {
		if err := d.lockSchema(ctx, tx); err != nil {
			return err
		}
		present, err := d.schemaVersion(ctx, tx)
		if err != nil || present >= d.version() {
			return err
		}
		if present == 0 {
			if err := d.createSchema(ctx, tx); err != nil {
				return err
			}
		}
		return d.upgrade(ctx, tx, present)
	})
}

// upgrade runs the steps after the version that is present.
func (d *database) upgrade(ctx context.Context, tx pgx.Tx, present int) error {
	for _, next := range d.steps {
		if next.version <= present {
			continue
		}
		if _, err := tx.Exec(ctx, next.sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("schema version %d: %w", next.version, err)
		}
		_, err := tx.Exec(ctx, "INSERT INTO meta (version, oldest) VALUES ($1, $2) "+
			"ON CONFLICT (one) DO UPDATE SET version = $1, oldest = greatest(meta.oldest, $2)",
			next.version, next.oldest)
		if err != nil {
			return err
		}
	}
	return nil
}

// lockSchema waits until no other program migrates, however long that takes. No statement of the
// migration that follows may be too long.
func (d *database) lockSchema(ctx context.Context, tx pgx.Tx) error {
	for _, statement := range []string{
		"SET LOCAL statement_timeout = 0",
		"SET LOCAL lock_timeout = 0",
		"SELECT pg_advisory_xact_lock(hashtextextended('acp-agent migrates " + d.schema + "', 0))",
		"SET LOCAL lock_timeout TO DEFAULT",
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// createSchema creates the schema unless it exists: then the user need not be allowed to create
// one.
func (d *database) createSchema(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1)",
		d.schema).Scan(&exists)
	if err == nil && !exists {
		_, err = tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{d.schema}.Sanitize())
	}
	return err
}

// schemaVersion returns the version of the schema, 0 if there is none. It fails if this program may
// not use it.
func (d *database) schemaVersion(
	ctx context.Context, q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	},
) (present int, err error) {
	var exists bool
	// to_regclass would not see what another transaction has created since this one began.
	err = q.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables "+
		"WHERE schemaname = $1 AND tablename = 'meta')", d.schema).Scan(&exists)
	if err != nil || !exists {
		return 0, err
	}
	var oldest int
	err = q.QueryRow(ctx, "SELECT version, oldest FROM meta").Scan(&present, &oldest)
	switch {
	case err != nil:
		return 0, err
	case present < d.steps[0].version:
		return 0, rules.ErrUnreleased
	case oldest > d.version():
		return 0, &rules.NewerError{Oldest: oldest, Version: d.version()}
	}
	return present, nil
}

// enter names the owner to row-level security, until the end of the transaction.
const enter = "SELECT set_config('acp_agent.owner', 'owner ' || $1, true)"

// write runs do in a transaction. It may run do several times.
func (s *Store) write(ctx context.Context, do func(*transaction) error) error {
	return s.transact(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, do)
}

// read runs do in a transaction whose statements see one snapshot. It may run do several times.
func (s *Store) read(ctx context.Context, do func(*transaction) error) error {
	return s.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}

func (s *Store) transact(ctx context.Context, o pgx.TxOptions, do func(*transaction) error) error {
	return s.use(ctx, func(pool *pgxpool.Pool) error {
		if err := s.turns.Acquire(ctx, s.owner); err != nil {
			return err
		}
		defer s.turns.Release()
		done := false
		err := pgx.BeginTxFunc(ctx, pool, o, func(begun pgx.Tx) error {
			tx := &transaction{begun, ctx, s.owner}
			err := tx.exec(enter)
			if err == nil {
				err = do(tx)
			}
			done = err == nil
			return err
		})
		if !done && isLost(err) && !errors.As(err, new(*pgconn.ConnectError)) {
			err = &uncommittedError{err}
		}
		return err
	})
}

// transaction is a transaction of an owner, whose name is $1 in its statements. They end with ctx.
type transaction struct {
	pgx.Tx
	ctx   context.Context
	owner string
}

// exec runs a statement without a result. The arguments are $2 and later.
func (tx *transaction) exec(text string, args ...any) error {
	_, err := tx.Exec(tx.ctx, text, append([]any{tx.owner}, args...)...)
	return err
}

// row runs a query for one row, with arguments as exec.
func (tx *transaction) row(query string, args ...any) pgx.Row {
	return tx.QueryRow(tx.ctx, query, append([]any{tx.owner}, args...)...)
}

// query runs a query for rows, with arguments as exec.
func (tx *transaction) query(query string, args ...any) (pgx.Rows, error) {
	return tx.Query(tx.ctx, query, append([]any{tx.owner}, args...)...)
}

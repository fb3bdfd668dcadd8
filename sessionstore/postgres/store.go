package postgres

import (
	"cmp"
	"context"
	_ "embed" // the schema
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
)

// attempts is how often a transaction is tried that fails because of others.
const attempts = 10

// defaultSchema is the schema of the tables, unless the address has a search_path.
const defaultSchema = "acp_agent"

// Options configure a Store.
type Options struct {
	// Address is a URL such as postgres://user@host/database, or a connection string, as of libpq.
	Address string
	// Retention is how long sessions that were never prompted are kept; 0 means forever. They are
	// deleted when a store is closed that was used, for about a second.
	Retention time.Duration
}

// Store is a [sessionstore.Shared] in a PostgreSQL database.
type Store struct {
	sessionstore.Shared
	core     *core.Store // the same
	database *database
}

// database is a [core.Database] in PostgreSQL.
type database struct {
	config *pgxpool.Config
	schema string
	pool   atomic.Pointer[pgxpool.Pool] // nil until it is open
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
	d := &database{config: config}
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
	s := core.New(d, core.Options{Retention: o.Retention})
	return &Store{s, s, d}, nil
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

// String returns the address of the database, without the user and the password.
func (s *Store) String() string { return s.database.String() }

// Close implements [core.Database].
func (d *database) Close() error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		d.pool.Load().Close()
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout): // the driver gives up later
	}
	return nil
}

// Traits implements [core.Database]. One connection is left for probes.
func (d *database) Traits() core.Traits {
	return core.Traits{Readers: max(int(d.config.MaxConns)-1, 1), CloseTimeout: closeTimeout,
		Next: "SELECT nextval('numbers')", AddPassage: addPassage, ForWrite: " FOR NO KEY UPDATE"}
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

// Repeat implements [core.Database]. It repeats a transaction that failed because of others, of a
// connection that was lost before its commit was sent, or of one that the database did not accept.
func (d *database) Repeat(err error, tried int, _ time.Duration) (time.Duration, bool) {
	if pool := d.pool.Load(); isLost(err) && pool != nil { // other connections are lost too
		pool.Reset()
	}
	if tried >= attempts || !mayRepeat(err) {
		return 0, false
	}
	if code(err) == tooManyConnections {
		return time.Duration(tried) * connectionPause, true
	}
	return 0, true
}

// Open implements [core.Database].
func (d *database) Open(ctx context.Context) error {
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), d.config)
	if err != nil {
		return err
	}
	err = d.checkConnection(ctx, pool)
	if err == nil {
		err = d.create(ctx, pool)
	}
	if err != nil {
		pool.Close()
		return err
	}
	d.pool.Store(pool)
	return nil
}

// Purged implements [core.Database]. PostgreSQL removes what was deleted when it vacuums.
func (d *database) Purged(context.Context, bool) error { return nil }

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

//go:embed schema.sql
var schema string

// create creates the tables unless they exist. Programs that start at the same time take turns.
func (d *database) create(ctx context.Context, pool *pgxpool.Pool) error {
	err := checkVersion(ctx, pool)
	if code(err) != noTable {
		return err
	}
	// Each statement has to see what another program has done while this one waited.
	o := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	err = pgx.BeginTxFunc(ctx, pool, o, func(tx pgx.Tx) error {
		// They wait however long that takes. No statement that follows may be too long.
		_, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; "+
			"SELECT pg_advisory_xact_lock(hashtextextended('acp-agent creates "+d.schema+"', 0)); "+
			"SET LOCAL lock_timeout TO DEFAULT", pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		// If the schema exists, the user need not be allowed to create one.
		tables := "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE " +
			"nspname = '" + d.schema + "') THEN CREATE SCHEMA " + d.schema +
			"; END IF; END $$; " + core.Schema(
			"bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", `text COLLATE "C"`, "bytea")
		_, err = tx.Exec(ctx, tables+schema, pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil && code(err) != tableExists { // another program was first
		return err
	}
	return checkVersion(ctx, pool)
}

// checkVersion returns an error unless there are tables that this program can use.
func checkVersion(ctx context.Context, pool *pgxpool.Pool) error {
	var version int
	err := pool.QueryRow(ctx, "SELECT version FROM meta").Scan(&version)
	return cmp.Or(err, core.CheckVersion(version))
}

const (
	// enter names the owner to row-level security, until the end of the transaction, and returns
	// the time of the database.
	enter = "SELECT set_config('acp_agent.owner', $1, true), " +
		"(extract(epoch FROM statement_timestamp()) * 1000)::bigint"
	beginRead  = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED"
)

// Transact implements [core.Database].
func (d *database) Transact(
	ctx context.Context, owner string, a core.Access, do func(core.Tx) error,
) error {
	conn, err := d.pool.Load().Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // which closes a connection that is still in a transaction
	tx := &transaction{conn: conn.Conn(), ctx: ctx, queued: &pgx.Batch{}}
	begin := beginRead
	if a == core.Write || a == core.Background {
		begin = beginWrite
	}
	name := "owner " + owner
	if owner == core.Everyone {
		name = "every owner"
	}
	tx.queued.Queue(begin)
	tx.queued.Queue(enter, name)
	err = do(tx)
	sent := err == nil
	if sent {
		err = tx.commit()
	}
	switch {
	case err == nil:
		return nil
	case isLost(err) && (!sent || code(err) != ""): // the database refused, so it has not committed
		return fmt.Errorf("%w: %w", errUncommitted, err)
	case isLost(err) && !pgconn.SafeToRetry(err):
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_, _ = conn.Exec(ending, "ROLLBACK") // if it fails the connection is closed
	return err
}

// transaction is a [core.Tx], whose statements end with ctx. A round trip takes longer than most
// statements, so those without a result are queued until the next one that has a result, or the
// commit, and sent together with it.
type transaction struct {
	conn   *pgx.Conn
	ctx    context.Context
	queued *pgx.Batch
	now    int64 // 0 until the transaction has begun
}

// rows are [core.Rows], the results of the last statement that was sent.
type rows struct {
	pgx.Rows
	sent pgx.BatchResults
}

// Close implements [core.Rows].
func (r rows) Close() error {
	r.Rows.Close()
	return r.sent.Close()
}

// Query implements [core.Tx].
func (tx *transaction) Query(text string, args ...any) (core.Rows, error) {
	before := tx.queued.Len()
	tx.queued.Queue(text, args...)
	sent := tx.conn.SendBatch(tx.ctx, tx.queued)
	tx.queued = &pgx.Batch{}
	// If a statement fails, so do those after it.
	if tx.now == 0 {
		before -= 2
		_, _ = sent.Exec()
		_ = sent.QueryRow().Scan(nil, &tx.now)
	}
	for range before {
		_, _ = sent.Exec()
	}
	found, err := sent.Query()
	if err != nil {
		_ = sent.Close()
		return nil, err
	}
	return rows{found, sent}, nil
}

// run runs a statement without rows, and returns what the database says of it.
func (tx *transaction) run(text string) (tag pgconn.CommandTag, err error) {
	found, err := tx.Query(text)
	if err != nil {
		return tag, err
	}
	err = found.Close()
	return found.(rows).CommandTag(), cmp.Or(found.Err(), err)
}

// Exec implements [core.Tx].
func (tx *transaction) Exec(text string, each ...[]any) error {
	for _, args := range each {
		tx.queued.Queue(text, args...)
	}
	return nil
}

// Now implements [core.Tx].
func (tx *transaction) Now() (now int64, err error) {
	if tx.now == 0 {
		_, err = tx.run("SELECT")
	}
	return tx.now, err
}

// commit commits the transaction. The connection may be lost after the database has said that it
// has committed.
func (tx *transaction) commit() error {
	tag, err := tx.run("COMMIT")
	if tag.String() == "COMMIT" {
		return nil
	}
	return cmp.Or(err, pgx.ErrTxCommitRollback)
}

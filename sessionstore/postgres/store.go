package postgres

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // the schema
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

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
	config *pgconn.Config
	size   int // of the pool
	schema string
	pool   atomic.Pointer[sql.DB] // nil until it is open
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
	config, err := pgconn.ParseConfig(address)
	if err != nil || misplacesPassword(address) {
		return nil, errors.New("the address of the session store is not valid; give one such as " +
			"postgres://USER@HOST/DATABASE, with %40 for @ and %2F for / in a password")
	}
	settings := config.RuntimeParams
	d := &database{config: config, size: max(4, runtime.NumCPU())}
	if size, ok := settings["pool_max_conns"]; ok {
		delete(settings, "pool_max_conns") // the server does not know it
		if d.size, err = strconv.Atoi(size); err != nil || d.size < 1 {
			return nil, errors.New("the address of the session store is not valid: " +
				"pool_max_conns must be at least 1")
		}
	}
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
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, 10*time.Second)
	config.DialFunc = (&net.Dialer{Control: limitLoss, KeepAliveConfig: net.KeepAliveConfig{
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
func (d *database) Close() error { return d.pool.Load().Close() }

// Traits implements [core.Database]. One connection is left for probes.
func (d *database) Traits() core.Traits {
	return core.Traits{Readers: max(d.size-1, 1), CloseTimeout: closeTimeout,
		Next: "SELECT nextval('numbers')", AddPassage: addPassage, ForWrite: " FOR NO KEY UPDATE"}
}

// String returns the address of the database, without the user and the password.
func (d *database) String() string {
	c := d.config
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
		pool.SetMaxIdleConns(0)
		pool.SetMaxIdleConns(d.size)
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
	pool := sql.OpenDB(connector{config: d.config})
	pool.SetMaxOpenConns(d.size)
	pool.SetMaxIdleConns(d.size)
	pool.SetConnMaxIdleTime(30 * time.Minute)
	pool.SetConnMaxLifetime(time.Hour)
	if err := use(ctx, pool, func(c *conn) error { return d.prepare(ctx, c) }); err != nil {
		_ = pool.Close()
		return err
	}
	d.pool.Store(pool)
	return nil
}

// use calls do with a connection of a pool.
func use(ctx context.Context, pool *sql.DB, do func(*conn) error) error {
	pooled, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer pooled.Close()
	return pooled.Raw(func(c any) error { return do(c.(*conn)) })
}

// Purged implements [core.Database]. PostgreSQL removes what was deleted when it vacuums.
func (d *database) Purged(context.Context, bool) error { return nil }

// prepare creates the tables unless they exist. It refuses a database whose text is not UTF-8, and a
// connection pooler that drops the settings of connections: it would create them in another schema.
func (d *database) prepare(ctx context.Context, c *conn) error {
	var encoding, path string
	err := c.row(ctx, "SELECT current_setting('server_encoding'), current_setting('search_path')",
		&encoding, &path)
	switch {
	case err != nil:
		return err
	case encoding != "UTF8":
		return errEncoding
	case path != d.schema:
		return errPooler
	}
	if err := checkVersion(ctx, c); code(err) != noTable {
		return err
	}
	err = d.create(ctx, c)
	if err != nil && code(err) != tableExists { // another program was first
		return err
	}
	return checkVersion(ctx, c)
}

//go:embed schema.sql
var schema string

// create creates the tables. Programs that start at the same time take turns.
func (d *database) create(ctx context.Context, c *conn) (err error) {
	// If the schema exists, the user need not be allowed to create one.
	tables := "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE " +
		"nspname = '" + d.schema + "') THEN CREATE SCHEMA " + d.schema +
		"; END IF; END $$; " + core.Schema(
		"bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", `text COLLATE "C"`, "bytea")
	// Each statement has to see what another program has done while this one waited. They wait
	// however long that takes. No statement that follows may be too long.
	for _, text := range []string{
		beginWrite + "; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; " +
			"SELECT pg_advisory_xact_lock(hashtextextended('acp-agent creates " + d.schema + "', 0)); " +
			"SET LOCAL lock_timeout TO DEFAULT",
		tables + schema,
		"COMMIT", // or ends what has failed
	} {
		err = cmp.Or(err, c.server.Exec(ctx, text).Close())
	}
	return err
}

// checkVersion returns an error unless there are tables that this program can use.
func checkVersion(ctx context.Context, c *conn) error {
	var version int64
	err := c.row(ctx, "SELECT version FROM meta", &version)
	return cmp.Or(err, core.CheckVersion(int(version)))
}

const (
	// enter names the owner to row-level security, until the end of the transaction, and returns
	// the time of the database.
	enter = "SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint " +
		"FROM set_config('acp_agent.owner', $1, true)"
	beginRead  = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED"
)

// Transact implements [core.Database].
func (d *database) Transact(
	ctx context.Context, owner string, a core.Access, do func(core.Tx) error,
) error {
	begin := beginRead
	if a == core.Write || a == core.Background {
		begin = beginWrite
	}
	name := "owner " + owner
	if owner == core.Everyone {
		name = "every owner"
	}
	return use(ctx, d.pool.Load(), func(c *conn) error {
		tx := &transaction{conn: c, ctx: ctx,
			queued: []statement{{text: begin}, {enter, []any{name}}}}
		return tx.end(do(tx))
	})
}

// transaction is a [core.Tx], whose statements end with ctx. A round trip takes longer than most
// statements, so those without a result are queued until the next one that has a result, or the
// commit, and sent together with it.
type transaction struct {
	conn   *conn
	ctx    context.Context
	queued []statement
	now    int64 // 0 until the transaction has begun
}

// run runs a statement after those that are queued, and returns its rows. If one fails, so do those
// after it.
func (tx *transaction) run(text string, args ...any) (*rows, error) {
	all := append(tx.queued, statement{text, args})
	tx.queued = nil
	r := &rows{sent: tx.conn.server.StartPipeline(tx.ctx)}
	err := tx.conn.send(r.sent, all)
	for err == nil && len(all) > 0 {
		var result any
		result, err = r.sent.GetResults()
		reader, ok := result.(*pgconn.ResultReader)
		if !ok { // a statement has failed, or was prepared
			continue
		}
		r.result = reader
		if all[0].text == enter && r.Next() {
			err = r.Scan(&tx.now)
		}
		all = all[1:]
	}
	if err != nil {
		tx.conn.failed = true
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// Query implements [core.Tx].
func (tx *transaction) Query(text string, args ...any) (core.Rows, error) {
	return tx.run(text, args...)
}

// Exec implements [core.Tx].
func (tx *transaction) Exec(text string, each ...[]any) error {
	for _, args := range each {
		tx.queued = append(tx.queued, statement{text, args})
	}
	return nil
}

// Now implements [core.Tx].
func (tx *transaction) Now() (int64, error) {
	if tx.now != 0 {
		return tx.now, nil
	}
	r, err := tx.run("SELECT")
	if err != nil {
		return 0, err
	}
	return tx.now, r.Close()
}

// end commits the transaction, unless it has failed with err.
func (tx *transaction) end(err error) error {
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
	_ = tx.conn.server.Exec(tx.ctx, "ROLLBACK").Close() // if it fails the connection is closed
	return err
}

// commit commits the transaction. The connection may be lost after the database has said that it
// has committed.
func (tx *transaction) commit() error {
	r, err := tx.run("COMMIT")
	if err != nil {
		return err
	}
	defer r.Close()
	if tag, _ := r.result.Close(); tag.String() != "COMMIT" {
		return errors.New("the database has not committed the change")
	}
	return nil
}

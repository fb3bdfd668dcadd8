package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/pgtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/workspace"
)

var server pgtest.Server

// The test binary acts as other processes, which get an address and a name.
const (
	addressVariable = "SESSIONSTORE_TEST_ADDRESS"
	nameVariable    = "SESSIONSTORE_TEST_NAME"
)

func TestMain(m *testing.M) {
	proctest.Play(play)
	volume.Checks(4, 100)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		server.Stop()
		os.Exit(code)
	}), goleak.IgnoreAnyFunction("github.com/acp-agent/acp-agent/internal/test/pgtest.(*Server).Resume.func1"))
}

// play makes random changes forever.
func play(string) int {
	s, err := postgres.New(postgres.Options{Address: os.Getenv(addressVariable)})
	if err == nil {
		err = errors.Join(storetest.Work(context.Background(), s, os.Getenv(nameVariable), math.MaxInt, os.Stdout), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func open(t *testing.T, address string) *postgres.Store {
	t.Helper()
	s, err := postgres.New(postgres.Options{Address: address})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// Clause N3.
func TestContract(t *testing.T) {
	address := server.Address(t)
	storetest.Test(t, storetest.OpenOwners(t,
		func(t *testing.T) sessionstore.Shared { return open(t, address) }))
}

// Clauses S1, S2, S3, N3.
func TestShared(t *testing.T) {
	address := server.Address(t)
	var n atomic.Int64
	storetest.TestShared(t,
		func(t *testing.T) sessionstore.Shared { return open(t, address) },
		func(t *testing.T, lines int) ([]byte, error) {
			cmd := exec.CommandContext(t.Context(), proctest.Executable())
			cmd.Env = append(os.Environ(), proctest.Env("worker", addressVariable+"="+address,
				nameVariable+fmt.Sprint("=process ", n.Add(1)))...)
			return proctest.KillAfter(cmd, lines)
		})
	require.Zero(t, server.Deadlocks(t), "transactions lock in one order")
}

func create(t *testing.T, s sessionstore.Store, id string) sessionstore.Lease {
	t.Helper()
	lease, err := s.Create(t.Context(), sessionstore.NewSession{ID: sessionstore.ID(id),
		Agent: sessionstore.Agent{Kind: "x"}, Keys: appKeys(t)})
	require.NoError(t, err)
	return lease
}

func appKeys(t *testing.T) sessionstore.Keys {
	t.Helper()
	cwd, err := workspace.ParseDir("/src/app")
	require.NoError(t, err)
	return sessionstore.Keys{Roots: workspace.RootsFrom(cwd, workspace.Dirs{}), Real: []workspace.Dir{cwd}}
}

// Clause S6.
func TestConcurrentCreation(t *testing.T) {
	address := server.Address(t)
	var all sync.WaitGroup
	for i := range 8 {
		s := open(t, address)
		all.Go(func() { create(t, s, fmt.Sprint(i)) })
	}
	all.Wait()
	page, err := open(t, address).List(t.Context(), sessionstore.Query{})
	require.NoError(t, err)
	require.Len(t, page.Sessions, 8)
}

// A program waits for another one that creates the tables as long as that takes, whatever is set for
// the user.
//
// Clause S6.
func TestSlowCreation(t *testing.T) {
	address := server.Address(t)
	slow := connect(t, address)
	_, err := slow.Exec(t.Context(), "BEGIN; "+
		"SELECT pg_advisory_xact_lock(hashtextextended('acp-agent creates "+schemaOf(t, address)+"', 0))")
	require.NoError(t, err)
	waiting := open(t, address+"&lock_timeout=10&statement_timeout=2000&default_transaction_isolation=serializable")
	done := make(chan struct{})
	go func() {
		defer close(done)
		create(t, waiting, "one")
	}()
	waitsForLock(t, address)
	time.Sleep(50 * time.Millisecond)
	_, err = slow.Exec(t.Context(), "COMMIT")
	require.NoError(t, err)
	<-done
	h, err := waiting.Check(t.Context())
	require.NoError(t, err)
	require.True(t, h.RowSecurity)
}

// waitsForLock waits until a connection of a store waits for a lock.
func waitsForLock(t *testing.T, address string) {
	t.Helper()
	admin := connect(t, strings.Replace(address, "acp@", "admin@", 1))
	require.Eventually(t, func() (waits bool) {
		err := admin.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity "+
			"WHERE application_name = 'acp-agent' AND wait_event_type = 'Lock')").Scan(&waits)
		return err == nil && waits
	}, time.Minute, time.Millisecond)
}

// The user owns the schema, and may not create another one.
func TestOwnedSchema(t *testing.T) {
	address := server.Address(t)
	admin := connect(t, strings.Replace(address, "acp@", "admin@", 1))
	_, err := admin.Exec(t.Context(), "CREATE SCHEMA "+schemaOf(t, address)+" AUTHORIZATION guest")
	require.NoError(t, err)
	create(t, open(t, strings.Replace(address, "acp@", "guest@", 1)), "one")
}

// A title that the user chooses while the agent's list is imported stays.
func TestRenameDuringImport(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	n := sessionstore.Imported{ID: "one", StateKey: "key", Keys: appKeys(t), Title: "first"}
	list := func() error {
		_, err := s.Import(t.Context(), sessionstore.Agent{Kind: "x"}, []sessionstore.Imported{n})
		return err
	}
	require.NoError(t, list())
	renaming := connect(t, address)
	_, err := renaming.Exec(t.Context(), "BEGIN; SELECT set_config('acp_agent.owner', 'owner ', true); "+
		"UPDATE sessions SET title = 'mine', renamed = true")
	require.NoError(t, err)
	n.Title = "second"
	done := make(chan error)
	go func() { done <- list() }()
	waitsForLock(t, address)
	_, err = renaming.Exec(t.Context(), "COMMIT")
	require.NoError(t, err)
	require.NoError(t, <-done)
	got, err := s.Get(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, "mine", got.Title)
}

// Calls wait for a connection if the database accepts no more of them.
func TestFewConnections(t *testing.T) {
	address := server.Address(t)
	admin := connect(t, strings.Replace(address, "acp@", "admin@", 1))
	user := "few_" + schemaOf(t, address)
	_, err := admin.Exec(t.Context(), "CREATE ROLE "+user+" LOGIN CONNECTION LIMIT 1; "+
		"CREATE SCHEMA "+schemaOf(t, address)+" AUTHORIZATION "+user)
	require.NoError(t, err)
	s := open(t, strings.Replace(address, "acp@", user+"@", 1))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { create(t, s, fmt.Sprint(i)) })
	}
	all.Wait()
}

// Text is UTF-8, whatever is set for the user or the database.
func TestClientEncoding(t *testing.T) {
	address := server.Address(t)
	create(t, open(t, address+"&client_encoding=LATIN1"), "größe")
	page, err := open(t, address).List(t.Context(), sessionstore.Query{})
	require.NoError(t, err)
	require.EqualValues(t, "größe", page.Sessions[0].ID)
}

// TestPing finds out that a database can only be read, as a standby can.
func TestPing(t *testing.T) {
	address := server.Address(t)
	require.NoError(t, open(t, address).Ping(t.Context()))
	standby := open(t, address+"&default_transaction_read_only=on")
	_, err := standby.List(t.Context(), sessionstore.Query{})
	require.NoError(t, err)
	require.ErrorContains(t, standby.Ping(t.Context()), "the database can only be read")
}

func TestSearchLongPhrase(t *testing.T) {
	s := open(t, server.Address(t))
	create(t, s, "one")
	found, err := s.Search(t.Context(), sessionstore.SearchQuery{Text: `"` + strings.Repeat("a ", 50_000) + `"`})
	require.NoError(t, err)
	require.Empty(t, found)
}

// A search uses the index of words, which row-level security must not prevent. It sees what it looks
// for, and nobody else's.
//
// Clause N1.
func TestSearchUsesIndex(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	for _, owner := range []string{"", "ann"} {
		lease := create(t, s.For(owner), "one")
		prompt, err := sessionstore.ParseUpdate([]byte(
			`{"update":{"sessionUpdate":"user_message_chunk","content":{"text":"shared words"}}}`))
		require.NoError(t, err)
		number, err := s.For(owner).BeginTurn(t.Context(), lease, sessionstore.Turn{Prompt: []sessionstore.Update{prompt}})
		require.NoError(t, err)
		require.NoError(t, s.For(owner).EndTurn(t.Context(), lease, number))
	}
	conn := connect(t, address)
	set := func(name, value string) {
		_, err := conn.Exec(t.Context(), "SELECT set_config($1, $2, false)", name, value)
		require.NoError(t, err)
	}
	var lexeme string
	set("acp_agent.owner", "owner ann")
	visible := func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*), coalesce(min(words::text), '') FROM words").Scan(&n, &lexeme))
		return n
	}
	require.Zero(t, visible())
	set("acp_agent.search", "!x") // matches all words
	require.Equal(t, 1, visible())
	set("acp_agent.search", strings.Fields(lexeme)[0][:10]+"':*")
	require.Equal(t, 1, visible())
	set("acp_agent.owner", "owner bob")
	require.Zero(t, visible())
	set("enable_seqscan", "off")
	rows, err := conn.Query(t.Context(), "EXPLAIN SELECT passage FROM words WHERE owner = 'ann' AND words @@ 'x'")
	require.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, strings.Join(plan, "\n"), "Bitmap Index Scan on by_word")
}

func schemaOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Query().Get("search_path")
}

// What another server does to an open session is announced.
//
// Clause S3.
func TestLossIsAnnounced(t *testing.T) {
	address := server.Address(t)
	here, there := open(t, address), open(t, address)
	admin := connect(t, strings.Replace(address, "acp@", "admin@", 1))
	// announced waits until the lease is found to be lost.
	announced := func(changed <-chan struct{}, s sessionstore.Store, l sessionstore.Lease) error {
		for {
			select {
			case <-changed:
			case <-time.After(time.Minute):
				return errors.New("nothing was announced")
			}
			if err := s.Append(t.Context(), l, nil); err != nil {
				return err
			}
		}
	}
	for _, owner := range []string{"", "ann"} {
		s, other := here.For(owner), there.For(owner)
		taken, deleted, kept := create(t, s, "taken"), create(t, s, "deleted"), create(t, s, "kept")
		watch := func(l sessionstore.Lease) <-chan struct{} {
			changed, stop := s.Watch(l.ID)
			t.Cleanup(stop)
			require.Eventually(t, func() (listens bool) {
				err := admin.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity "+
					"WHERE query = 'LISTEN acp_agent' AND state = 'idle')").Scan(&listens)
				return err == nil && listens
			}, time.Minute, time.Millisecond)
			<-changed
			return changed
		}
		onTaken, onDeleted, onKept := watch(taken), watch(deleted), watch(kept)
		_, err := other.Activate(t.Context(), "taken", sessionstore.Activation{Keys: appKeys(t)})
		require.NoError(t, err)
		require.NoError(t, other.Delete(t.Context(), "deleted"))
		require.ErrorAs(t, announced(onTaken, s, taken), new(*sessionstore.FencedError))
		require.ErrorAs(t, announced(onDeleted, s, deleted), new(*sessionstore.NotFoundError))
		require.NoError(t, s.Rename(t.Context(), "kept", "title"))
		_, err = s.BeginTurn(t.Context(), kept, sessionstore.Turn{})
		require.NoError(t, err)
		require.Empty(t, onKept)

		// Whatever happens while the connection is lost is noticed when it is back.
		onKept = watch(kept)
		disconnect(t, address)
		_, err = other.Activate(t.Context(), "kept", sessionstore.Activation{Keys: appKeys(t)})
		require.NoError(t, err)
		require.ErrorAs(t, announced(onKept, s, kept), new(*sessionstore.FencedError))
	}
}

// disconnect ends all connections of stores.
func disconnect(t *testing.T, address string) {
	t.Helper()
	_, err := connect(t, strings.Replace(address, "acp@", "admin@", 1)).Exec(t.Context(),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'acp-agent'")
	require.NoError(t, err)
}

// A database that was restarted is used again without an error, as long as nothing was running.
func TestLostConnections(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	lease := create(t, s, "one")
	for range 3 {
		var all sync.WaitGroup
		for range 8 { // fills the pool
			all.Go(func() { _, _ = s.List(t.Context(), sessionstore.Query{}) })
		}
		all.Wait()
		disconnect(t, address)
		_, err := s.BeginTurn(t.Context(), lease, sessionstore.Turn{})
		require.NoError(t, err)
	}
}

// Clause W9.
func TestCloseWhileDatabaseHangs(t *testing.T) {
	address, hang := hanging(t, server.Address(t))
	s, err := postgres.New(postgres.Options{Address: address, Retention: time.Hour})
	require.NoError(t, err)
	create(t, s, "one")
	hang()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = s.List(ctx, sessionstore.Query{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	start := time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(start), volume.Patience)
}

// hanging returns an address of the same database that passes nothing on once hang was called.
func hanging(t *testing.T, address string) (_ string, hang func()) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	query, name := u.Query(), "/.s.PGSQL.5432"
	socket := query.Get("host") + name
	dir, err := os.MkdirTemp("/tmp", "pg") // the path of a socket is short
	require.NoError(t, err)
	l, err := net.Listen("unix", dir+name)
	require.NoError(t, err)
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	var all sync.WaitGroup
	var hangs atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	pass := func(from, to net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if hangs.Load() {
				<-ctx.Done()
			}
			if err == nil {
				_, err = to.Write(buffer[:n])
			}
			if err != nil {
				_, _ = from.Close(), to.Close()
				return
			}
		}
	}
	all.Go(func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("unix", socket)
			if err != nil {
				_ = here.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = here.Close(), there.Close() })
			all.Go(func() { pass(here, there) })
			all.Go(func() { pass(there, here) })
		}
	})
	t.Cleanup(func() {
		stop()
		_ = l.Close()
		all.Wait()
		require.NoError(t, os.RemoveAll(dir))
	})
	return u.String(), func() { hangs.Store(true) }
}

// A transaction that was not committed when the connection was lost is repeated.
func TestLostTransaction(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	create(t, s, "one")
	other := connect(t, address)
	_, err := other.Exec(t.Context(), "BEGIN; SELECT set_config('acp_agent.owner', 'owner ', true); "+
		"SELECT FROM sessions FOR UPDATE")
	require.NoError(t, err)
	done := make(chan error)
	go func() { done <- s.Rename(t.Context(), "one", "title") }()
	waitsForLock(t, address)
	disconnect(t, address)
	_, err = other.Exec(t.Context(), "COMMIT")
	require.NoError(t, err)
	require.NoError(t, <-done)
	got, err := s.Get(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, "title", got.Title)
}

func TestRetention(t *testing.T) {
	address := server.Address(t)
	conn := connect(t, address)
	old := func(s sessionstore.Store, owner, id string) {
		create(t, s, id)
		_, err := conn.Exec(t.Context(), "SELECT set_config('acp_agent.owner', 'owner ' || $1, false)", owner)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "UPDATE sessions SET updated = 1 WHERE id = $1", id)
		require.NoError(t, err)
	}
	closed := func(owner string) (kept []string) {
		s, err := postgres.New(postgres.Options{Address: address, Retention: time.Hour})
		require.NoError(t, err)
		page, err := s.For(owner).List(t.Context(), sessionstore.Query{})
		require.NoError(t, err)
		for _, session := range page.Sessions {
			kept = append(kept, string(session.ID))
		}
		require.NoError(t, s.Close())
		return kept
	}
	s := open(t, address)
	for _, owner := range []string{"", "ann"} {
		old(s.For(owner), owner, "old")
		create(t, s.For(owner), "new")
		lease := create(t, s.For(owner), "used")
		_, err := s.For(owner).BeginTurn(t.Context(), lease, sessionstore.Turn{})
		require.NoError(t, err)
	}
	require.Len(t, closed(""), 3)
	for range 100 { // in a second a busy machine does not come to the end
		if len(closed(""))+len(closed("ann")) == 4 {
			break
		}
		_, err := conn.Exec(t.Context(), "UPDATE meta SET pruned = 0")
		require.NoError(t, err)
	}
	require.Len(t, closed(""), 2)
	require.Len(t, closed("ann"), 2)
}

// Lists and names are found by indexes, which row-level security must not prevent.
//
// Clause S7.
func TestFewRowsAreRead(t *testing.T) {
	address := server.Address(t)
	first := open(t, address)
	for i := range 50 {
		_, err := first.Create(t.Context(), sessionstore.NewSession{ID: sessionstore.ID(strconv.Itoa(i)),
			Agent: sessionstore.Agent{Kind: "x"}, Keys: folderKeys(t, i)})
		require.NoError(t, err)
	}
	admin := connect(t, strings.Replace(address, "acp@", "admin@", 1))
	_, err := admin.Exec(t.Context(), `
		INSERT INTO sessions (owner, id, agent, cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash,
			real_dirs_hash, title, created, updated, generation, key, strand, turns, listing, meta, name, state_key)
		SELECT '', n, agent, cwd, dirs, cwd, dirs, cwd_hash, dirs_hash, cwd_hash, dirs_hash, '', n, n, n, n, n, 1, 0, '',
			sha256(n::text::bytea), n::text::bytea
		FROM generate_series(100, 20000) AS n JOIN sessions ON id = (n % 50)::text`)
	require.NoError(t, err)
	k := folderKeys(t, 7)
	cwd := &sessionstore.DirFilter{Spelling: k.Roots.Cwd(), Real: k.Real[0]}
	additional := &sessionstore.DirsFilter{Spelling: k.Roots.Additional(), Real: k.Real[1:]}
	// read returns the number of rows and of pages of indexes that were read.
	read := func() (n int) {
		// What admin did itself, such as the rows that it added, is reported first.
		for _, refresh := range []string{"SELECT pg_stat_force_next_flush()", "SELECT pg_stat_clear_snapshot()"} {
			_, err := admin.Exec(t.Context(), refresh)
			require.NoError(t, err)
		}
		err := admin.QueryRow(t.Context(), "SELECT seq_tup_read + sum(idx_blks_read + idx_blks_hit) FROM pg_stat_user_tables t "+
			"JOIN pg_statio_user_indexes USING (relid) WHERE relid = 'sessions'::regclass GROUP BY seq_tup_read").Scan(&n)
		require.NoError(t, err)
		return n
	}
	for _, prepare := range []string{"SELECT 'without statistics'", "ANALYZE sessions"} {
		_, err := admin.Exec(t.Context(), prepare)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return read() >= 0 }, time.Minute, time.Millisecond)
		before := read()
		s, err := postgres.New(postgres.Options{Address: address})
		require.NoError(t, err)
		for _, q := range []sessionstore.Query{{}, {Cwd: cwd}, {Additional: additional}, {Cwd: cwd, Additional: additional}} {
			q.Limit = 10
			for range 8 { // plans change after a few
				page, err := s.List(t.Context(), q)
				require.NoError(t, err)
				require.Len(t, page.Sessions, 10)
				q.Cursor = page.Next
			}
		}
		for _, name := range []string{"700", "no session"} {
			_, _ = s.Named(t.Context(), sessionstore.Agent{Kind: "x"}, name)
			_, _ = s.Get(t.Context(), sessionstore.ID(name))
		}
		require.NoError(t, s.Close()) // its connections then report what they did
		require.Eventually(t, func() bool { return read() > before }, time.Minute, time.Millisecond)
		time.Sleep(time.Second / 10)
		t.Log(prepare, read()-before)
		require.Less(t, read()-before, 5_000, prepare)
	}
}

// folderKeys returns the keys of a session in one of many folders.
func folderKeys(t *testing.T, i int) sessionstore.Keys {
	t.Helper()
	roots, err := workspace.NewRoots(fmt.Sprint("/src/", i), []string{fmt.Sprint("/lib/", i)})
	require.NoError(t, err)
	return sessionstore.Keys{Roots: roots, Real: []workspace.Dir{roots.Cwd(), roots.Additional().At(0)}}
}

// A connection pooler may drop settings; a database may not hold every text.
func TestUnusableDatabases(t *testing.T) {
	address := server.Address(t)
	admin := connect(t, strings.Replace(address, "acp@", "admin@", 1))
	_, err := admin.Exec(t.Context(), "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0 OWNER acp")
	require.NoError(t, err)
	_, err = open(t, strings.Replace(address, "/postgres", "/latin", 1)).List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "create a database with ENCODING 'UTF8'")
	_, err = open(t, strings.Replace(address, "/postgres", "/missing", 1)).List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "create the database")
	_, err = open(t, address+"&no_such=1").List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "check the parameters in the address")
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Clause S6.
func TestSchemaNeedsNewerProgram(t *testing.T) {
	address := server.Address(t)
	create(t, open(t, address), "one")
	_, err := connect(t, address).Exec(t.Context(), "UPDATE meta SET version = 99")
	require.NoError(t, err)
	_, err = open(t, address).List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "update acp-agent")
}

// Clause S6.
func TestSchemaFromBeforeTheFirstRelease(t *testing.T) {
	address := server.Address(t)
	create(t, open(t, address), "one")
	_, err := connect(t, address).Exec(t.Context(), "UPDATE meta SET version = 3")
	require.NoError(t, err)
	_, err = open(t, address).List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "before the first release")
	require.ErrorContains(t, err, "another schema")
}

// Row-level security hides rows from a query that forgets the owner.
//
// Clause N1.
func TestRowsOfOtherOwners(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	create(t, s, "one")
	lease := create(t, s.For("ann"), "two")
	_, err := s.For("ann").BeginTurn(t.Context(), lease, sessionstore.Turn{})
	require.NoError(t, err)
	conn := connect(t, address)
	visible := func() (ids []string) {
		rows, err := conn.Query(t.Context(), "SELECT id FROM sessions")
		require.NoError(t, err)
		ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return ids
	}
	require.Empty(t, visible())
	_, err = conn.Exec(t.Context(), "SET acp_agent.owner = ''") // as after a transaction
	require.NoError(t, err)
	require.Empty(t, visible())
	for _, tt := range []struct {
		owner   string
		visible []string
	}{{"", []string{"one"}}, {"ann", []string{"two"}}, {"bob", nil}} {
		_, err = conn.Exec(t.Context(), "SELECT set_config('acp_agent.owner', 'owner ' || $1, false)", tt.owner)
		require.NoError(t, err)
		require.ElementsMatch(t, tt.visible, visible())
	}
	_, err = conn.Exec(t.Context(), "INSERT INTO agents (owner, kind, profile) VALUES ('ann', 'y', '')")
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "42501", refused.Code)
}

// Clause S4.
func TestNoPasswordInErrors(t *testing.T) {
	for _, address := range []string{
		"postgres://ann:secret@[::1/db", "postgres://ann:secret@localhost/db?sslmode=strange",
		"host=/nowhere user=ann password=secret port=x",
		"postgres://ann:12/secret@localhost/db", "postgres://ann:12@secret@localhost/db",
		"postgres://ann:12?@secret@localhost/db",
	} {
		_, err := postgres.New(postgres.Options{Address: address})
		require.ErrorContains(t, err, "is not valid")
		require.NotContains(t, err.Error(), "secret")
	}
	for _, address := range []string{
		"postgres://ann:12%2F%40secret@/db?host=/nowhere", "postgres:///db?user=a@b&host=/nowhere\n",
		"postgresql://ann:1#2?3@localhost:1", "postgres://ann:1?a=2@localhost:1",
	} {
		_, err := postgres.New(postgres.Options{Address: address})
		require.NoError(t, err, address)
	}
	s := open(t, "postgres://ann:secret@/db?host=/nowhere")
	_, err := s.List(t.Context(), sessionstore.Query{})
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Contains(t, unavailable.Hint, "check that the database runs")
	require.NotContains(t, fmt.Sprintf("%+v", err), "secret")
}

// The driver has a line for each attempt.
func TestNoConnection(t *testing.T) {
	_, err := open(t, "postgres://ann@127.0.0.1:1/db").List(t.Context(), sessionstore.Query{})
	require.EqualError(t, err, "session store postgres://127.0.0.1:1/db: cannot connect: "+
		"127.0.0.1:1 (127.0.0.1): dial error: dial tcp 127.0.0.1:1: connect: connection refused; "+
		"check that the database runs and can be reached, then try again")
}

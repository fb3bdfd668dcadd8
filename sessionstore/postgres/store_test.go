package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/pgtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
)

var server pgtest.Server

func TestMain(m *testing.M) {
	proctest.Play(play)
	volume.Checks(25, 100)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		server.Stop()
		os.Exit(code)
	}), goleak.IgnoreAnyFunction("github.com/acp-agent/acp-agent/internal/test/pgtest.(*Server).Resume.func1"))
}

// Clause N3.
func TestContract(t *testing.T) {
	address := server.Address(t)
	storetest.Test(t, storetest.OpenOwners(t,
		func(t *testing.T) sessionstore.Shared { return open(t, address) }))
}

// A program waits for another one that creates the tables as long as that takes, whatever is set
// for the user.
//
// Clause S6.
func TestSlowCreation(t *testing.T) {
	address := server.Address(t)
	slow := connect(t, address)
	execute(t, slow, "BEGIN; "+
		"SELECT pg_advisory_xact_lock(hashtextextended('acp-agent creates "+schemaOf(t, address)+"', 0))")
	waiting := open(t, address+"&lock_timeout=10&statement_timeout=2000&default_transaction_isolation=serializable")
	done := make(chan struct{})
	go func() {
		defer close(done)
		storetest.Create(t, waiting, "one")
	}()
	waitsForLock(t, address)
	time.Sleep(50 * time.Millisecond)
	execute(t, slow, "COMMIT")
	<-done
	h, err := waiting.Check(t.Context())
	require.NoError(t, err)
	require.True(t, h.RowSecurity)
}

// The user owns the schema, and may not create another one.
func TestOwnedSchema(t *testing.T) {
	address := server.Address(t)
	admin := connectAs(t, address, "admin")
	execute(t, admin, "CREATE SCHEMA "+schemaOf(t, address)+" AUTHORIZATION guest")
	storetest.Create(t, open(t, strings.Replace(address, "acp@", "guest@", 1)), "one")
}

// A title that the user chooses while the agent's list is imported stays.
func TestRenameDuringImport(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	n := sessionstore.Session{ID: "one", StateKey: "key", Keys: storetest.Keys(t, "app"),
		Title: "first"}
	list := func() error {
		_, err := s.Import(t.Context(), sessionstore.Agent{Kind: "x"}, []sessionstore.Session{n}, false)
		return err
	}
	require.NoError(t, list())
	renaming := connect(t, address)
	execute(t, renaming, "BEGIN; SELECT set_config('acp_agent.owner', 'owner ', true); "+
		"UPDATE sessions SET title = 'mine', renamed = true")
	n.Title = "second"
	done := make(chan error)
	go func() { done <- list() }()
	waitsForLock(t, address)
	execute(t, renaming, "COMMIT")
	require.NoError(t, <-done)
	got, err := s.Get(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, "mine", got.Title)
}

// Calls wait for a connection if the database accepts no more of them.
func TestFewConnections(t *testing.T) {
	address := server.Address(t)
	admin := connectAs(t, address, "admin")
	user := "few_" + schemaOf(t, address)
	execute(t, admin, "CREATE ROLE "+user+" LOGIN CONNECTION LIMIT 1; "+
		"CREATE SCHEMA "+schemaOf(t, address)+" AUTHORIZATION "+user)
	s := open(t, strings.Replace(address, "acp@", user+"@", 1))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { storetest.Create(t, s, fmt.Sprint(i)) })
	}
	all.Wait()
}

// Text is UTF-8, whatever is set for the user or the database.
func TestClientEncoding(t *testing.T) {
	address := server.Address(t)
	storetest.Create(t, open(t, address+"&client_encoding=LATIN1"), "größe")
	page, err := open(t, address).List(t.Context(), sessionstore.Query{})
	require.NoError(t, err)
	require.EqualValues(t, "größe", page.Sessions[0].ID)
}

// Row-level security hides rows from a query that forgets the owner.
//
// Clause N1.
func TestRowsOfOtherOwners(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	storetest.Create(t, s, "one")
	lease := storetest.Create(t, s.For("ann"), "two")
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
		execute(t, conn, "SELECT set_config('acp_agent.owner', 'owner ' || $1, false)", tt.owner)
		require.ElementsMatch(t, tt.visible, visible())
	}
	_, err = conn.Exec(t.Context(), "INSERT INTO agents (owner, kind, profile) VALUES ('ann', 'y', '')")
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "42501", refused.Code)
}

// A role that is no superuser reads everything, as pg_dump does, and other roles as much as before.
func TestBackupRole(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	storetest.Create(t, s, "one")
	storetest.Create(t, s.For("ana"), "two")

	schema := schemaOf(t, address)
	admin := connectAs(t, address, "admin")
	execute(t, admin, "CREATE ROLE acp_backup LOGIN")
	script := dirtest.Read(t, "../../docs/operating/deploy/backup.sql")
	owner := connect(t, address)
	for range 2 {
		execute(t, owner, strings.ReplaceAll(script, "acp_agent", schema))
	}

	count := func(user, table string) (n int) {
		c := connectAs(t, address, user)
		require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
		return n
	}
	for _, table := range []string{"sessions", "agents"} {
		require.Equal(t, count("admin", table), count("acp_backup", table), table)
		require.Zero(t, count("acp", table), table)
	}
	require.Equal(t, 2, count("acp_backup", "sessions"))
	_, err := connectAs(t, address, "acp_backup").Exec(t.Context(), "DELETE FROM sessions")
	require.Error(t, err)
	h, err := s.Check(t.Context())
	require.NoError(t, err)
	require.True(t, h.RowSecurity)
}

// The test binary acts as other processes, which get an address and a name.
const (
	addressVariable = "SESSIONSTORE_TEST_ADDRESS"
	nameVariable    = "SESSIONSTORE_TEST_NAME"
)

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

// Lists and names are found by indexes, which row-level security must not prevent.
//
// Clause S7.
func TestFewRowsAreRead(t *testing.T) {
	address := server.Address(t)
	first := open(t, address)
	keys := func(i int) sessionstore.Keys {
		return storetest.Keys(t, fmt.Sprint("app", i), fmt.Sprint("lib", i))
	}
	for i := range 50 {
		_, err := first.Create(t.Context(), sessionstore.Session{ID: sessionstore.ID(strconv.Itoa(i)),
			Agent: sessionstore.Agent{Kind: "x"}, Keys: keys(i)})
		require.NoError(t, err)
	}
	admin := connectAs(t, address, "admin")
	execute(t, admin, `
		INSERT INTO sessions (owner, id, agent, cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash,
			real_dirs_hash, title, created, updated, generation, key, strand, turns, listing, meta, name, state_key)
		SELECT '', n, agent, cwd, dirs, cwd, dirs, cwd_hash, dirs_hash, cwd_hash, dirs_hash, '', n, n, n, n, n, 1, 0, '',
			sha256(n::text::bytea), n::text::bytea
		FROM generate_series(100, 20000) AS n JOIN sessions ON id = (n % 50)::text`)
	k := keys(7)
	cwd := &sessionstore.DirFilter{Spelling: k.Roots.Cwd(), Real: k.Real[0]}
	additional := &sessionstore.DirsFilter{Spelling: k.Roots.Additional(), Real: k.Real[1:]}
	// read returns the number of rows and of pages of indexes that were read.
	read := func() (n int) {
		// What admin did itself, such as the rows that it added, is reported first.
		for _, refresh := range []string{"SELECT pg_stat_force_next_flush()", "SELECT pg_stat_clear_snapshot()"} {
			execute(t, admin, refresh)
		}
		err := admin.QueryRow(t.Context(), "SELECT seq_tup_read + sum(idx_blks_read + idx_blks_hit) FROM pg_stat_user_tables t "+
			"JOIN pg_statio_user_indexes USING (relid) WHERE relid = 'sessions'::regclass GROUP BY seq_tup_read").Scan(&n)
		require.NoError(t, err)
		return n
	}
	for _, prepare := range []string{"SELECT 'without statistics'", "ANALYZE sessions"} {
		execute(t, admin, prepare)
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

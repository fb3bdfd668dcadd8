package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/pgtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/sessionstore/storetest"
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
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		server.Stop()
		os.Exit(code)
	}), goleak.IgnoreAnyFunction("github.com/acp-agent/acp-agent/internal/test/pgtest.(*Server).run.func1"))
}

// play makes random changes forever.
func play(string) int {
	s, err := postgres.New(os.Getenv(addressVariable))
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
	s, err := postgres.New(address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// Clause N3.
func TestContract(t *testing.T) {
	address := server.Address(t)
	n := 0
	storetest.Test(t, func(t *testing.T) sessionstore.Shared {
		n++
		s, name := open(t, address), fmt.Sprintf("test %d ", n)
		return tenant{s.For(name), s, name}
	})
}

// tenant is a part of a store that no other test uses: its owners have names of their own. That is
// faster than a schema for each test.
type tenant struct {
	sessionstore.Store
	all  *postgres.Store
	name string
}

func (s tenant) For(owner string) sessionstore.Store { return s.all.For(s.name + owner) }

func (s tenant) Close() error { return s.all.Close() }

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
	var deadlocks int
	err := connect(t, address).QueryRow(t.Context(),
		"SELECT sum(deadlocks) FROM pg_stat_database").Scan(&deadlocks)
	require.NoError(t, err)
	require.Zero(t, deadlocks, "transactions lock in one order")
}

func create(t *testing.T, s sessionstore.Store, id string) sessionstore.Lease {
	t.Helper()
	cwd, err := workspace.ParseDir("/src/app")
	require.NoError(t, err)
	lease, err := s.Create(t.Context(), sessionstore.NewSession{ID: sessionstore.ID(id), Agent: sessionstore.Agent{Kind: "x"},
		Keys: sessionstore.Keys{Roots: workspace.RootsFrom(cwd, workspace.Dirs{}), Real: []workspace.Dir{cwd}}})
	require.NoError(t, err)
	return lease
}

// Clause S6.
func TestConcurrentMigration(t *testing.T) {
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
	_, err := connect(t, address).Exec(t.Context(), "UPDATE meta SET version = 99, oldest = 99")
	require.NoError(t, err)
	_, err = open(t, address).List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "update acp-agent")
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
	for owner, id := range map[string]string{"": "one", "ann": "two", "bob": ""} {
		_, err = conn.Exec(t.Context(), "SELECT set_config('acp_agent.owner', 'owner ' || $1, false)", owner)
		require.NoError(t, err)
		if id == "" {
			require.Empty(t, visible())
		} else {
			require.Equal(t, []string{id}, visible())
		}
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
	} {
		_, err := postgres.New(address)
		require.ErrorContains(t, err, "is not valid")
		require.NotContains(t, err.Error(), "secret")
	}
	s := open(t, "postgres://ann:secret@/db?host=/nowhere")
	_, err := s.List(t.Context(), sessionstore.Query{})
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Contains(t, unavailable.Hint, "check that the database runs")
	require.NotContains(t, fmt.Sprintf("%+v", err), "secret")
}

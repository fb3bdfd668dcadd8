package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
)

// opened returns a store in dir.
func opened(t *testing.T, dir string) *Store {
	t.Helper()
	s := New(Options{Dir: dir})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// execute runs a statement in a store that is open.
func execute(t testing.TB, s *Store, text string, args ...any) {
	t.Helper()
	_, err := s.file.writer.ExecContext(t.Context(), text, args...)
	require.NoError(t, err)
}

// A call that waits for others returns why its context ended.
func TestWaitEndsWithCause(t *testing.T) {
	s := opened(t, t.TempDir())
	lease := storetest.Create(t, s, "one")
	cause := errors.New("it took too long")
	only, err := s.file.writer.Conn(t.Context())
	require.NoError(t, err)
	defer only.Close()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
	defer cancel()
	require.ErrorIs(t, s.SetTitle(ctx, lease, "x"), cause)
}

func listAll(s *Store) error {
	_, err := s.List(context.Background(), sessionstore.Query{})
	return err
}

// locked makes another program hold the write lock until unlock is called.
func locked(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	other := opened(t, dir)
	require.NoError(t, listAll(other))
	tx, err := other.file.writer.BeginTx(context.Background(), nil)
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback()) }
}

// Clause S2.
func TestWaitingCallCanBeCancelled(t *testing.T) {
	s := opened(t, t.TempDir())
	lease := storetest.Create(t, s, "one")
	unlock := locked(t, s.Dir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Append(ctx, lease, updates(1)), context.DeadlineExceeded)
	_, err := s.List(t.Context(), sessionstore.Query{})
	require.NoError(t, err, "readers do not wait")
	_, err = opened(t, s.Dir()).List(t.Context(), sessionstore.Query{})
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
	lease := storetest.Create(t, s, "one")
	defer locked(t, s.Dir())()
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, s.Append(t.Context(), lease, updates(1)), &unavailable)
	require.Contains(t, unavailable.Hint, "another program")
}

func TestCloseEndsWaitingCalls(t *testing.T) {
	s := opened(t, t.TempDir())
	lease := storetest.Create(t, s, "one")
	defer locked(t, s.Dir())()
	waiting := make(chan error)
	go func() { waiting <- s.Append(t.Context(), lease, updates(1)) }()
	time.Sleep(20 * time.Millisecond) // until the call is under way, probably
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-waiting, sessionstore.ErrClosed)
}

// Clause S9.
func TestStoppedReaderDoesNotGrowLog(t *testing.T) {
	s := opened(t, t.TempDir())
	lease := storetest.Create(t, s, "one")
	require.NoError(t, s.Append(t.Context(), lease, updates(20_000)))
	next, stop := iter.Pull2(s.History(t.Context(), "one"))
	defer stop()
	_, err, ok := next()
	require.True(t, ok)
	require.NoError(t, err)
	other := storetest.Create(t, s, "two")
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

// A file that was removed, moved or replaced is noticed before anything is acknowledged: what is
// stored in it would be lost.
//
// Clause S12.
func TestFileIsGone(t *testing.T) {
	for name, move := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+".old") },
		"replaced": func(dir string) error {
			other := New(Options{Dir: dir + ".new"})
			return errors.Join(listAll(other), other.Close(), os.RemoveAll(dir), os.Rename(dir+".new", dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			s := New(Options{Dir: dir})
			lease := storetest.Create(t, s, "one")
			meanwhile := func(core.Tx) error { return move(dir) }
			require.ErrorIs(t, s.file.Transact(t.Context(), "", core.Write, meanwhile), errReplaced)
			_, began := s.BeginTurn(t.Context(), lease, sessionstore.Turn{})
			_, created := s.Create(t.Context(), sessionstore.Session{ID: "two", Keys: manyKeys(t, 1)})
			for _, err := range []error{began, created, listAll(s),
				s.Append(t.Context(), lease, updates(1)), s.Append(t.Context(), lease, nil)} {
				var unavailable *sessionstore.UnavailableError
				require.ErrorAs(t, err, &unavailable)
				require.ErrorIs(t, err, errReplaced)
				require.Contains(t, unavailable.Hint, "move it back")
			}
			if name == "moved" {
				require.NoError(t, os.Rename(dir+".old", dir))
				require.NoError(t, s.Append(t.Context(), lease, updates(1)))
			}
			_ = s.Close()
		})
	}
}

// The connections are as the package's documentation says.
func TestPragmas(t *testing.T) {
	s := opened(t, t.TempDir())
	storetest.Create(t, s, "one")
	for pragma, want := range map[string]string{
		"application_id": fmt.Sprint(applicationID), "user_version": fmt.Sprint(core.Version),
		"journal_mode": "wal", "secure_delete": "1", "foreign_keys": "1",
	} {
		for name, pool := range map[string]*sql.DB{
			"writer": s.file.writer, "reader": s.file.reader, "purger": s.file.purger,
		} {
			var got string
			require.NoError(t, pool.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
			require.Equal(t, want, strings.ToLower(got), "%s of the %s", pragma, name)
		}
	}
}

// Clause S6.
func TestFileOfAnotherVersion(t *testing.T) {
	for version, hint := range map[int]string{core.Version - 1: "move it away", core.Version + 1: "update acp-agent"} {
		dir := t.TempDir()
		s := New(Options{Dir: dir})
		storetest.Create(t, s, "one")
		execute(t, s, fmt.Sprintf("PRAGMA user_version = %d", version))
		require.NoError(t, s.Close())
		other := opened(t, dir)
		var unavailable *sessionstore.UnavailableError
		require.ErrorAs(t, listAll(other), &unavailable)
		require.Equal(t, filepath.Join(dir, fileName), unavailable.Medium)
		require.Contains(t, unavailable.Hint, hint)
		_, err := Repair(t.Context(), Options{Dir: dir}, nil)
		require.ErrorContains(t, err, hint, "it is not damaged")
	}
}

// Clause P7.
func TestOldDraftsArePurged(t *testing.T) {
	now := time.Now()
	s := New(Options{Dir: t.TempDir(), Now: func() time.Time { return now }, purgeDelay: time.Millisecond})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	rows := func(table string) (n int) {
		require.NoError(t, s.file.reader.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
		return n
	}
	lease := storetest.Create(t, s, "one")
	require.NoError(t, s.Charge(t.Context(), lease, []sessionstore.Charge{{Meter: sessionstore.TurnMeter}}))
	left, err := s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.NoError(t, left.Append(t.Context(), updates(3)))
	now = now.Add(24 * time.Hour)
	_, err = s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.NoError(t, left.Append(t.Context(), updates(3)), "it is just young enough")
	now = now.Add(time.Millisecond)
	_, err = s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.ErrorIs(t, left.Append(t.Context(), updates(3)), sessionstore.ErrDraft)
	require.Eventually(t, func() bool { return rows("drafts") == 2 }, time.Minute, time.Millisecond)
	require.Zero(t, rows("segments"))
	require.Equal(t, 1, rows("charges"), "that of the session")
}

func TestMemoryDoesNotTouchTheDisk(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("TMPDIR", dir)
	s := New(Options{journal: journalMemory, purgeDelay: time.Millisecond, Retention: time.Hour})
	lease := storetest.Create(t, s, "one")
	require.NoError(t, s.Append(t.Context(), lease, updates(3)))
	draft, err := s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.NoError(t, draft.Append(t.Context(), updates(3)))
	require.NoError(t, draft.Discard(t.Context()))
	require.NoError(t, s.Delete(t.Context(), "one"))
	require.Eventually(t, s.Purged, time.Minute, time.Millisecond)
	require.NoError(t, s.CheckDir())
	require.Error(t, s.file.Explain(&fs.PathError{Op: "write", Path: "x", Err: fs.ErrInvalid}))
	require.NoError(t, s.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Clauses A35, N1.
func TestRetentionOfOwners(t *testing.T) {
	now := time.Now()
	o := Options{Dir: t.TempDir(), Retention: time.Hour, Now: func() time.Time { return now }}
	owners := func(s *Store) []sessionstore.Store { return []sessionstore.Store{s, s.For("ann")} }
	s := New(o)
	for _, one := range owners(s) {
		_, err := one.Create(t.Context(), sessionstore.Session{ID: "one", Agent: sessionstore.Agent{Kind: "x"}, Keys: manyKeys(t, 1)})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	for _, want := range []int{1, 0} {
		now = now.Add(48 * time.Hour)
		s = New(o)
		for _, one := range owners(s) {
			page, err := one.List(t.Context(), sessionstore.Query{})
			require.NoError(t, err)
			require.Len(t, page.Sessions, want)
		}
		require.NoError(t, s.Close())
	}
}

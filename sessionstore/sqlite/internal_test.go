package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// opened returns a store in dir that knows steps.
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

func TestS6_ANewerProgramDoesNotBreakAnOlderOne(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps())
	lease := made(t, older, "one")

	added := append(steps(), step{sql: "ALTER TABLE sessions ADD COLUMN note TEXT; CREATE TABLE more (x INTEGER) STRICT", oldest: 1})
	newer := opened(t, dir, added)
	made(t, newer, "two")
	require.NoError(t, older.Append(t.Context(), lease, updates(3)), "the older one is still open")
	made(t, older, "three")
	another := opened(t, dir, steps())
	page, err := another.List(t.Context(), sessionstore.Query{})
	require.NoError(t, err, "and another one opens")
	require.Len(t, page.Sessions, 3)
}

func TestS6_AFileOfEveryOlderVersionIsBroughtUpToDate(t *testing.T) {
	for version := 1; version < len(steps()); version++ {
		dir := t.TempDir()
		older := opened(t, dir, steps()[:version])
		lease := made(t, older, "one")
		require.NoError(t, older.Append(t.Context(), lease, updates(3)))
		newer := opened(t, dir, steps())
		draft, err := newer.NewDraft(t.Context(), "one")
		require.NoError(t, err)
		require.NoError(t, draft.Append(t.Context(), updates(5)))
		require.NoError(t, older.Append(t.Context(), lease, updates(1)), "version %d is still open", version)
		_, err = newer.Activate(t.Context(), "one", sessionstore.Activation{Keys: manyKeys(t, 1), History: draft})
		require.NoError(t, err)
		require.ErrorAs(t, older.Append(t.Context(), lease, nil), new(*sessionstore.FencedError))
		n := 0
		for _, err := range older.History(t.Context(), "one") {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 5, n)
		require.NoError(t, older.Delete(t.Context(), "one"))
	}
}

func TestP7_DraftsThatWereLeftAloneAreDropped(t *testing.T) {
	now := time.Now()
	s := New(Options{Dir: t.TempDir(), Now: func() time.Time { return now }})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	segments := func() (n int) {
		require.NoError(t, s.use(t.Context(), func(db *database) error {
			return db.reader.QueryRowContext(t.Context(), "SELECT count(*) FROM segments").Scan(&n)
		}))
		return n
	}
	made(t, s, "one")
	left, err := s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.NoError(t, left.Append(t.Context(), updates(3)))
	now = now.Add(maxDraftAge)
	_, err = s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, 1, segments())
	now = now.Add(time.Millisecond)
	_, err = s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.Zero(t, segments())
	require.ErrorIs(t, left.Append(t.Context(), updates(3)), sessionstore.ErrDraft)
}

func TestS6_AFileThatNeedsANewerProgramSaysSo(t *testing.T) {
	dir := t.TempDir()
	older := opened(t, dir, steps())
	lease := made(t, older, "one")
	newest := opened(t, dir, append(steps(), step{sql: "ALTER TABLE sessions DROP COLUMN title", oldest: len(steps()) + 1}))
	require.NoError(t, newest.Check(t.Context(), lease))

	fresh := opened(t, dir, steps())
	_, err := fresh.List(t.Context(), sessionstore.Query{})
	for _, err := range []error{err, older.Append(t.Context(), lease, updates(1))} {
		var unavailable *sessionstore.UnavailableError
		require.ErrorAs(t, err, &unavailable)
		require.Equal(t, filepath.Join(dir, fileName), unavailable.Path)
		require.Contains(t, unavailable.Hint, "update acp-agent")
		require.ErrorAs(t, err, new(*newerError))
	}
}

func TestS6_AStepThatFailsLeavesTheFileAsItWas(t *testing.T) {
	dir := t.TempDir()
	lease := made(t, opened(t, dir, steps()), "one")
	broken := opened(t, dir, append(steps(), step{sql: "CREATE TABLE half (x INTEGER) STRICT; CREATE TABLE meta (x INTEGER) STRICT", oldest: 1}))
	require.ErrorAs(t, broken.Check(t.Context(), lease), new(*sessionstore.UnavailableError))
	again := opened(t, dir, append(steps(), step{sql: "CREATE TABLE half (x INTEGER) STRICT", oldest: 1}))
	require.NoError(t, again.Check(t.Context(), lease))
}

func TestS2_ManyOpenANewStoreAtOnce(t *testing.T) {
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

func TestS4_AFullDiskIsNoCrash(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	lease := made(t, s, "one")
	limit := func(pages int) {
		require.NoError(t, s.use(t.Context(), func(db *database) error {
			_, err := db.writer.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		}))
	}
	limit(1) // SQLite takes the pages that there are
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
	require.NoError(t, s.Append(t.Context(), lease, updates(100)), "nothing is left open")
	require.NoError(t, s.Delete(t.Context(), "one"))
}

// locked makes another program hold the write lock until the returned function is called.
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

func TestS2_ACallThatWaitsHeedsItsContext(t *testing.T) {
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
	require.Equal(t, 1, n, "the call that gave up did nothing")
}

func TestS2_AStoreThatStaysLockedSaysSo(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), lockTimeout: time.Millisecond})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	lease := made(t, s, "one")
	defer locked(t, s.Dir())()
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, s.Append(t.Context(), lease, updates(1)), &unavailable)
	require.Contains(t, unavailable.Hint, "another program")
}

func TestCloseEndsCallsThatWait(t *testing.T) {
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

func TestS9_AReaderThatStopsDoesNotLetTheLogGrow(t *testing.T) {
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

func TestNewestSchemaStartsFromTheFirst(t *testing.T) {
	s := opened(t, t.TempDir(), steps())
	made(t, s, "one")
	require.NoError(t, s.use(t.Context(), func(db *database) error {
		for pragma, want := range map[string]string{
			"application_id": fmt.Sprint(applicationID), "user_version": fmt.Sprint(len(steps())),
			"auto_vacuum": "2", "journal_mode": "wal", "secure_delete": "1", "foreign_keys": "1",
		} {
			for name, pool := range map[string]*sql.DB{"writer": db.writer, "reader": db.reader} {
				var got string
				require.NoError(t, pool.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
				require.Equal(t, want, strings.ToLower(got), "%s of the %s", pragma, name)
			}
		}
		return nil
	}))
}

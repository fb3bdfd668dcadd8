package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// TestOverwriteStale makes SQLite split index pages and deletes their content, which stays in the
// file until it is overwritten.
//
// Clause S10.
func TestOverwriteStale(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileName)
	require.NoError(t, createFile(path))
	name := func(i int) string { return fmt.Sprintf("SECRET<%04d>", i) }
	const names, kept = 4000, 7
	statements := func(run func(context.Context, *sql.DB)) {
		db, err := connect(path, journalWAL)
		require.NoError(t, err)
		run(t.Context(), db.writer)
		require.NoError(t, db.close())
	}
	left := func() (n int) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for i := range names {
			if i%kept != 0 && bytes.Contains(content, []byte(name(i))) {
				n++
			}
		}
		return n
	}

	statements(func(ctx context.Context, db *sql.DB) {
		exec := func(text string, args ...any) {
			_, err := db.ExecContext(ctx, text, args...)
			require.NoError(t, err)
		}
		exec("CREATE TABLE names (n INTEGER PRIMARY KEY, name TEXT UNIQUE)")
		exec("CREATE TABLE meta AS SELECT 1 AS oldest")
		exec("BEGIN")
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(names) {
			exec("INSERT INTO names VALUES (?, ?)", i, name(i))
		}
		exec("COMMIT")
		exec("DELETE FROM names WHERE n % ? <> 0", kept)
	})
	require.NotZero(t, left(), "SQLite leaves copies behind")

	statements(func(ctx context.Context, db *sql.DB) {
		e := eraser{pool: db, version: newest(steps())}
		require.NoError(t, e.vacuum(ctx))
		require.NoError(t, e.overwrite(ctx))
		require.NoError(t, e.emptyLog(ctx))
		var verdict string
		require.NoError(t, db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&verdict))
		require.Equal(t, "ok", verdict)
		var rows int
		require.NoError(t, db.QueryRowContext(ctx,
			"SELECT count(*) FROM names INDEXED BY sqlite_autoindex_names_1 WHERE name > ''").Scan(&rows))
		require.Equal(t, (names+kept-1)/kept, rows)
	})
	require.Zero(t, left())
}

// Clause S10.
func TestPagesThatMapPointers(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileName)
	require.NoError(t, createFile(path))
	db, err := connect(path, journalWAL)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.close()) }()
	_, err = db.writer.ExecContext(t.Context(), `
		PRAGMA auto_vacuum = INCREMENTAL;
		CREATE TABLE t (x BLOB);
		WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
		INSERT INTO t SELECT randomblob(3000) FROM n`)
	require.NoError(t, err)
	var pages int64
	require.NoError(t, db.writer.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages))
	var trees, maps []int64
	for n := int64(1); n <= pages; n++ {
		if mapsPointers(n, 4096) {
			maps = append(maps, n)
		}
	}
	rows, err := db.writer.QueryContext(t.Context(), "SELECT pageno FROM dbstat ORDER BY pageno")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var n int64
		require.NoError(t, rows.Scan(&n))
		trees = append(trees, n)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, []int64{2, 822, 1642}, maps)
	require.Len(t, trees, int(pages)-len(maps))
	for _, n := range maps {
		require.NotContains(t, trees, n)
	}
}

// A delete writes a few pages, however large the store and the session are.
//
// Clause S10.
func TestDeleteWritesFewPages(t *testing.T) {
	// cost returns the number of pages in the log after a delete of one of some sessions.
	cost := func(sessions, length int) (pages int) {
		s := New(Options{Dir: t.TempDir(), eraseDelay: time.Hour})
		defer s.Close()
		for i := range sessions {
			lease := made(t, s, fmt.Sprint(i))
			require.NoError(t, s.Append(t.Context(), lease, updates(length)))
		}
		checkpoint := func(mode string) (length int) {
			require.NoError(t, s.use(t.Context(), func(db *database) error {
				var busy, moved int
				row := db.writer.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint("+mode+")")
				return row.Scan(&busy, &length, &moved)
			}))
			return length
		}
		require.Zero(t, checkpoint("TRUNCATE"))
		require.NoError(t, s.Delete(t.Context(), "1"))
		return checkpoint("PASSIVE")
	}
	small := cost(10, 30)
	require.Less(t, cost(400, 30), 3*small, "pages in a small store: %d", small)
	require.Less(t, cost(2, 30_000), 3*small, "pages for a short session: %d", small)
}

// appendText appends an update with a text of a certain length.
func appendText(t *testing.T, s *Store, lease sessionstore.Lease, text string) {
	t.Helper()
	raw := fmt.Appendf(nil, `{"update":{"sessionUpdate":"plan","entries":%q}}`, text)
	require.NoError(t, s.Append(t.Context(), lease,
		[]sessionstore.Update{sessionstore.StoredUpdate(raw)}))
}

// Another process may use a freed page before it is given back, and SQLite does not overwrite the
// end of a page that it takes from the list of free ones.
//
// Clause S10.
func TestNothingIsLeftInReusedPages(t *testing.T) {
	for name, title := range map[string]string{
		"history": "title", "title": strings.Repeat("SECRET", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Dir: t.TempDir(), eraseDelay: time.Hour})
			other := New(Options{Dir: s.Dir(), eraseDelay: time.Hour})
			kept := made(t, other, "kept")
			lease := made(t, s, "secret")
			require.NoError(t, s.SetTitle(t.Context(), lease, title))
			for range 20 {
				appendText(t, s, lease, strings.Repeat("SECRET", 1000))
			}
			require.NoError(t, s.Delete(t.Context(), lease.ID))
			pool, err := openPool(dsn(filepath.Join(s.Dir(), fileName), "immediate",
				pragmas(journalWAL, time.Second, "FAST")), 1)
			require.NoError(t, err)
			e := eraser{pool: pool, version: newest(steps())}
			if name == "history" {
				require.NoError(t, e.inPieces(t.Context(), dropPassage))
				require.NoError(t, e.inPieces(t.Context(), dropSegment))
			}
			for range 200 {
				appendText(t, other, kept, strings.Repeat("x", 4050)) // some of it in its row's page
			}
			require.NoError(t, pool.Close())
			require.NoError(t, other.Close())
			require.NoError(t, s.Close())
			content, err := os.ReadFile(filepath.Join(s.Dir(), fileName))
			require.NoError(t, err)
			require.Zero(t, bytes.Count(content, []byte("SECRET")))
		})
	}
}

// erased reports whether nothing is left of deleted sessions.
func erased(t testing.TB, s *Store) (yes bool) {
	require.NoError(t, s.read(t.Context(), func(tx *transaction) error {
		return tx.row("SELECT (deletes = erased OR ?) "+
			"AND NOT EXISTS (SELECT 1 FROM dropped) FROM meta", s.options.journal == journalMemory).Scan(&yes)
	}))
	return yes
}

// Clause S10.
func TestErasingLargeSessionLetsOthersWrite(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), eraseDelay: time.Millisecond})
	defer s.Close()
	lease := made(t, s, "large")
	for range 12 {
		require.NoError(t, s.Append(t.Context(), lease, updates(10_000)))
	}
	other := New(Options{Dir: s.Dir(), eraseDelay: time.Hour})
	defer other.Close()
	lease = made(t, other, "other")
	require.NoError(t, s.Delete(t.Context(), "large"))
	writes := 0
	for ; !erased(t, other); writes++ {
		require.NoError(t, other.Append(t.Context(), lease, updates(1)))
		time.Sleep(time.Millisecond)
	}
	require.Greater(t, writes, 20)
	info, err := os.Stat(filepath.Join(s.Dir(), fileName))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(1<<20), "the space is given back")
}

// Clause S10.
func TestErasingWithStoppedReaderDoesNotGrowLog(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), eraseDelay: time.Millisecond})
	defer s.Close()
	lease := made(t, s, "large")
	for range 12 {
		require.NoError(t, s.Append(t.Context(), lease, updates(10_000)))
	}
	other := opened(t, s.Dir(), steps())
	var tx *sql.Tx
	require.NoError(t, other.use(t.Context(), func(db *database) (err error) {
		if tx, err = db.reader.BeginTx(context.Background(), nil); err != nil {
			return err
		}
		_, err = tx.Exec("SELECT count(*) FROM sessions")
		return err
	}))
	require.NoError(t, s.Delete(t.Context(), "large"))
	left := func() (n int) {
		require.NoError(t, s.read(t.Context(), func(tx *transaction) error {
			return tx.row("SELECT count(*) FROM segments").Scan(&n)
		}))
		return n
	}
	all := left()
	require.Eventually(t, func() bool { return left() < all }, time.Minute, time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	require.NotZero(t, left(), "it waits for the reader")
	log, err := os.Stat(filepath.Join(s.Dir(), fileName+"-wal"))
	require.NoError(t, err)
	require.Less(t, log.Size(), int64(12<<20), "of some 50 MB")
	require.NoError(t, tx.Rollback())
	require.Eventually(t, func() bool { return erased(t, s) }, time.Minute, 10*time.Millisecond)
}

func TestMemoryDoesNotTouchTheDisk(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("TMPDIR", dir)
	now := time.Now()
	s := New(Options{
		journal: journalMemory, eraseDelay: time.Millisecond,
		Retention: time.Hour, Now: func() time.Time { return now },
	})
	lease := made(t, s, "one")
	require.NoError(t, s.Append(t.Context(), lease, updates(3)))
	made(t, s, "unused")
	draft, err := s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.NoError(t, draft.Append(t.Context(), updates(3)))
	require.NoError(t, draft.Discard(t.Context()))
	require.NoError(t, s.Delete(t.Context(), "one"))
	require.Eventually(t, func() bool { return erased(t, s) }, time.Minute, time.Millisecond)
	now = now.Add(rules.RetentionInterval)
	require.NoError(t, s.CheckDir())
	require.Error(t, s.explain(&fs.PathError{Op: "write", Path: "x", Err: fs.ErrInvalid}))
	require.NoError(t, s.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

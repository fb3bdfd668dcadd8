package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
		exec("BEGIN")
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(names) {
			exec("INSERT INTO names VALUES (?, ?)", i, name(i))
		}
		exec("COMMIT")
		exec("DELETE FROM names WHERE n % ? <> 0", kept)
	})
	require.NotZero(t, left(), "SQLite leaves copies behind")

	statements(func(ctx context.Context, db *sql.DB) {
		e := eraser{pool: db}
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

// What a delete does depends on the session, not on the store.
//
// Clause S10.
func TestDeleteDoesNotScan(t *testing.T) {
	// pages returns the numbers of pages in the log after a delete from a store of some sessions,
	// and of transactions.
	cost := func(sessions int) (pages int) {
		s := New(Options{Dir: t.TempDir(), eraseDelay: time.Hour})
		defer s.Close()
		for i := range sessions {
			lease := made(t, s, fmt.Sprint(i))
			require.NoError(t, s.Append(t.Context(), lease, updates(30)))
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
	small, large := cost(10), cost(1000)
	require.Less(t, large, 3*small, "pages in a small store: %d", small)
}

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
	statements := func(run func(context.Context, *sql.Conn)) {
		db, err := connect(path, journalWAL)
		require.NoError(t, err)
		conn, err := db.writer.Conn(t.Context())
		require.NoError(t, err)
		run(t.Context(), conn)
		require.NoError(t, conn.Close())
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

	statements(func(ctx context.Context, conn *sql.Conn) {
		exec := func(text string, args ...any) {
			_, err := conn.ExecContext(ctx, text, args...)
			require.NoError(t, err)
		}
		exec("CREATE TABLE names (n INTEGER PRIMARY KEY, name TEXT UNIQUE)")
		exec("BEGIN")
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(names) {
			exec("INSERT INTO names VALUES (?, ?)", i, name(i))
		}
		exec("COMMIT")
		exec("DELETE FROM names WHERE n % ? <> 0", kept)
		_, err := vacuum(ctx, conn)
		require.NoError(t, err)
	})
	require.NotZero(t, left(), "SQLite leaves copies behind")

	statements(func(ctx context.Context, conn *sql.Conn) {
		done, err := overwriteStale(ctx, conn)
		require.NoError(t, err)
		require.True(t, done)
		var verdict string
		require.NoError(t, conn.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&verdict))
		require.Equal(t, "ok", verdict)
		var rows int
		require.NoError(t, conn.QueryRowContext(ctx, "SELECT count(*) FROM names INDEXED BY sqlite_autoindex_names_1 WHERE name > ''").Scan(&rows))
		require.Equal(t, (names+kept-1)/kept, rows)
	})
	require.Zero(t, left())
}

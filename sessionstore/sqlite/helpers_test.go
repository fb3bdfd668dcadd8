package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// contents returns the bytes of all files in dir. The store must be closed: reading the file
// otherwise would release SQLite's locks.
func contents(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, dirtest.Read(t, filepath.Join(dir, e.Name()))...)
	}
	return all
}

// integrity returns the result of SQLite's integrity check.
func integrity(t *testing.T, dir string) (verdict string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "sessions.db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict))
	return verdict
}

// ids returns the ids of a store's sessions.
func ids(t *testing.T, s *sqlite.Store) []string {
	t.Helper()
	page, err := s.List(t.Context(), sessionstore.Query{Limit: sessionstore.MaxPageSize})
	require.NoError(t, err)
	all := []string{}
	for _, session := range page.Sessions {
		all = append(all, string(session.ID))
	}
	return all
}

// open returns a store in o.Dir or a new directory, which is closed at the end of the test.
func open(t testing.TB, o sqlite.Options) *sqlite.Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s := sqlite.New(o)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

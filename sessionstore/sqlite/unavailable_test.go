package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

func TestS5_FilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes; the directory's access list is inherited")
	}
	dir := filepath.Join(t.TempDir(), "state", "acp-agent")
	s := open(t, sqlite.Options{Dir: dir})
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "a store that is not used leaves no trace")
	create(t, s, "one")
	for _, d := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Stat(d)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), d)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, f := range files {
		names = append(names, f.Name())
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
	}
	require.Equal(t, []string{"sessions.db", "sessions.db-shm", "sessions.db-wal", "sessions.lock"}, names)
}

// requireUnavailable checks that the store says which file is in trouble and what to do.
func requireUnavailable(t *testing.T, err error, path, hint string) {
	t.Helper()
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Equal(t, path, unavailable.Path)
	require.Contains(t, unavailable.Hint, hint)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, hint)
}

func list(t *testing.T, s *sqlite.Store) error {
	t.Helper()
	_, err := s.List(t.Context(), sessionstore.Query{})
	return err
}

func TestS4_AFileThatIsNoDatabaseIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	garbage := []byte(strings.Repeat("not a database ", 1000))
	require.NoError(t, os.WriteFile(path, garbage, 0o600))
	s := open(t, sqlite.Options{Dir: dir})
	for range 2 {
		requireUnavailable(t, list(t, s), path, "acp-agent sessions repair")
	}
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, garbage, after)

	require.NoError(t, os.Remove(path))
	create(t, s, "one") // the same store works once the cause is gone
}

func TestS4_ADamagedFileIsLeftAlone(t *testing.T) {
	s := open(t, sqlite.Options{})
	path := filepath.Join(s.Dir(), "sessions.db")
	lease := create(t, s, "one")
	for range 50 {
		require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say(strings.Repeat("x", 10_000))}))
	}
	require.NoError(t, s.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := 4096; i < len(content); i++ {
		content[i] = 0xff // all pages but the first
	}
	require.NoError(t, os.WriteFile(path, content, 0o600))

	s = open(t, sqlite.Options{Dir: s.Dir()})
	requireUnavailable(t, list(t, s), path, "acp-agent sessions repair")
	_, err = s.Get(t.Context(), "one")
	requireUnavailable(t, err, path, "acp-agent sessions repair")
	require.NoError(t, s.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, content, after)
}

func TestS4_AnotherProgramsDatabaseIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "CREATE TABLE music (title TEXT)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	s := open(t, sqlite.Options{Dir: dir})
	requireUnavailable(t, list(t, s), path, "move it away")
	require.NoError(t, s.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestS4_ADirectoryThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	dir := filepath.Join(file, "state")
	requireUnavailable(t, list(t, open(t, sqlite.Options{Dir: dir})), dir, "")
}

func TestS4_AReadOnlyDirectory(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("permissions do not bind this user")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o700)) })
	requireUnavailable(t, list(t, open(t, sqlite.Options{Dir: dir})), dir, "writable")
}

package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// filled returns the directory of a closed store with some sessions and a fork.
func filled(t *testing.T, sessions int) (dir string) {
	t.Helper()
	s := sqlite.New(sqlite.Options{Dir: t.TempDir()})
	for i := range sessions {
		lease := storetest.Create(t, s, fmt.Sprint("session ", i))
		for range 5 {
			number := storetest.Begin(t, s, lease, sessionstore.Turn{Prompt: storetest.Said("ask")})
			words := storetest.Said(strings.Repeat("x", 3000))
			require.NoError(t, s.Append(t.Context(), lease, words))
			require.NoError(t, s.EndTurn(t.Context(), lease, number))
		}
	}
	_, err := s.Fork(t.Context(), "session 0",
		sessionstore.Session{ID: "fork", Keys: storetest.Keys(t, "app")})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return s.Dir()
}

// damage overwrites parts of 4 KiB of the file of a closed store.
func damage(t *testing.T, dir string, hit func(part int) bool) (damaged []byte) {
	t.Helper()
	const size = 4096
	path := filepath.Join(dir, "sessions.db")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for part := 0; part*size < len(content); part++ {
		if hit(part) {
			copy(content[part*size:], strings.Repeat("\xff", size))
		}
	}
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return content
}

// A repair replaces a damaged file by one that the caller fills, and keeps the damaged one. It
// leaves an intact file as it is.
//
// Clause S4.
func TestRepair(t *testing.T) {
	fill := func(damaged, fresh *sqlite.Store) error {
		_, err := damaged.Get(t.Context(), "session 1")
		require.NoError(t, err, "some of it can be read")
		storetest.Create(t, fresh, "readable")
		return nil
	}
	dir := filled(t, 20)
	kept, err := sqlite.Repair(t.Context(), sqlite.Options{Dir: dir}, fill)
	require.NoError(t, err)
	require.Empty(t, kept)
	before := damage(t, dir, func(part int) bool { return part == 80 })
	kept, err = sqlite.Repair(t.Context(), sqlite.Options{Dir: dir}, fill)
	require.NoError(t, err)
	content, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.Equal(t, before, content)
	require.Equal(t, []string{"readable"}, ids(t, open(t, sqlite.Options{Dir: dir})))
	left, err := filepath.Glob(filepath.Join(dir, "sessions.repair*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// Clause S4.
func TestRepairOfWhatIsNoDatabase(t *testing.T) {
	dir := filled(t, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sessions.db"), []byte(strings.Repeat("not a database ", 1000)), 0o600))
	kept, err := sqlite.Repair(t.Context(), sqlite.Options{Dir: dir}, func(damaged, fresh *sqlite.Store) error {
		_, err := damaged.Owners(t.Context())
		require.Error(t, err)
		return nil
	})
	require.NoError(t, err)
	require.FileExists(t, kept)
	require.Empty(t, ids(t, open(t, sqlite.Options{Dir: dir})))
}

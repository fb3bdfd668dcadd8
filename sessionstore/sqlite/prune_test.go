package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Clause S10.
func TestPruneErases(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := open(t, sqlite.Options{Now: func() time.Time { return now }})
	source := create(t, s, "source")
	require.NoError(t, s.Append(t.Context(), source, []sessionstore.Update{say("COPIED")}))
	create(t, s, "OLD AND EMPTY")
	now = now.Add(48 * time.Hour)
	_, err := s.Fork(t.Context(), "source", sessionstore.Session{ID: "fork", Keys: rooted(t, "app")})
	require.NoError(t, err)
	require.NoError(t, s.Append(t.Context(), source, []sessionstore.Update{say("BEHIND THE FORK")}))
	create(t, s, "young")

	bound := now.Add(-24 * time.Hour)
	n, err := s.Prune(t.Context(), sessionstore.PruneQuery{UnusedBefore: bound})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = s.Prune(t.Context(), sessionstore.PruneQuery{Before: bound})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []string{"young", "fork"}, ids(t, s))
	require.NoError(t, s.Close())
	files := string(contents(t, s.Dir()))
	require.Contains(t, files, "COPIED", "the fork has it")
	require.NotContains(t, files, "BEHIND THE FORK")
	require.NotContains(t, files, "OLD AND EMPTY")
	require.Equal(t, "ok", integrity(t, s.Dir()))
}

// Clause S10.
func TestPruneInBatches(t *testing.T) {
	const sessions = 450
	s := open(t, sqlite.Options{})
	for i := range sessions {
		create(t, s, fmt.Sprint(i))
	}
	n, err := s.Prune(t.Context(), sessionstore.PruneQuery{UnusedBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, sessions, n)
	require.Empty(t, ids(t, s))
}

// Clause S10.
func TestRetention(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	use := func(names ...string) []string {
		s := sqlite.New(sqlite.Options{Dir: dir, Retention: sessionstore.Retention, Now: func() time.Time { return now }})
		found := ids(t, s)
		for _, name := range names {
			create(t, s, name)
		}
		require.NoError(t, s.Close())
		return found
	}
	require.Empty(t, use("one"))
	now = now.Add(sessionstore.Retention - time.Hour)
	require.Equal(t, []string{"one"}, use("two"))
	now = now.Add(2 * time.Hour)
	require.Equal(t, []string{"two", "one"}, use(), "this one prunes when it closes")
	require.Equal(t, []string{"two"}, use())
}

// Clause S10.
func TestRetentionOfUnusedStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, sqlite.New(sqlite.Options{Dir: dir, Retention: time.Hour}).Close())
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

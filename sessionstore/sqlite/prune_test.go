package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

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

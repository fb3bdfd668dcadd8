package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Clause S10.
func TestRetentionOfUnusedStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, sqlite.New(sqlite.Options{Dir: dir, Retention: time.Hour}).Close())
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

//go:build unix

package sqlite_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Clause S4.
func TestReadOnlyDirectory(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) { // for root every directory is writable
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o700)) })
	store := open(t, sqlite.Options{Dir: dir})
	requireUnavailable(t, store.CheckDir(), dir, "writable")
	requireUnavailable(t, list(t, store), dir, "writable")
}

//go:build unix

package privatefile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/files/privatefile"
)

// Its owner could let others in later.
//
// Clause A25.
func TestDirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	dir := filepath.Join(t.TempDir(), "private")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, above := range []string{filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
		require.NoError(t, os.Chmod(above, 0o755))
	}
	require.NoError(t, syscall.Seteuid(65534))
	err := privatefile.MakeDir(dir)
	assert.NoError(t, syscall.Seteuid(0))
	require.ErrorIs(t, err, fs.ErrPermission)
}

// Root may change the permissions of a directory that somebody else made first, for example in
// /tmp.
//
// Clause A25.
func TestRootDoesNotTakeADirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	dir := filepath.Join(t.TempDir(), "private")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chown(dir, 65534, 65534))
	err := privatefile.WriteFile(filepath.Join(dir, "file"), nil)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "belongs to another user")
	require.NoError(t, os.Chown(dir, 0, 0))
	require.NoError(t, privatefile.WriteFile(filepath.Join(dir, "file"), nil))
}

package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A kernel or a sandbox without statx tells what is there, but not in which mount.
func TestC7_WithoutStatxNoMountIsKnown(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	for _, name := range []string{"file", "dir", "link", "fifo", ""} {
		flags := unix.AT_SYMLINK_NOFOLLOW
		if name == "" {
			flags |= unix.AT_EMPTY_PATH
		}
		known, err := see(fd, name)
		require.NoError(t, err)
		require.NotZero(t, known.mount, name)
		old, err := seeWithoutMount(fd, name, flags)
		require.NoError(t, err)
		require.Zero(t, old.mount, name)
		known.mount = 0
		require.Equal(t, known, old, name)
	}
	_, err = seeWithoutMount(fd, "missing", 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}

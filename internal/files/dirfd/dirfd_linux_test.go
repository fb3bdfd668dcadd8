package dirfd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A kernel or sandbox without statx does not tell the mount of a file.
//
// Clause C7.
func TestWithoutStatxNoMountIsKnown(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	for _, name := range []string{"file", "dir", "link", "fifo", ""} {
		known, err := stat(fd, name)
		require.NoError(t, err)
		require.NotZero(t, known.mount, name)
		old, err := statWithoutMount(fd, name)
		require.NoError(t, err)
		require.Zero(t, old.mount, name)
		known.mount = 0
		require.Equal(t, known, old, name)
	}
	_, err = statWithoutMount(fd, "missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Some files of /proc and /sys look regular but make their readers wait. Only root can open those,
// so a FIFO with a writer stands in for them.
//
// Clause C6.
func TestReadsDoNotWait(t *testing.T) {
	top := t.TempDir()
	fifo := filepath.Join(top, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	writer, err := unix.Open(fifo, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(writer)
	f, err := open(t, top).Open("fifo")
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	require.ErrorIs(t, err, unix.EAGAIN)
	_, err = unix.Write(writer, []byte("x"))
	require.NoError(t, err)
	_, err = f.Read(make([]byte, 1))
	require.NoError(t, err)
}

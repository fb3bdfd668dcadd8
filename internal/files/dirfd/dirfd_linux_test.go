package dirfd

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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

package workspace_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

// Some files of /proc and /sys call themselves regular, and yet let their readers wait. Nobody but root can open those,
// so a FIFO with a writer stands in for them, below the layer that refuses one.
func TestC6_NothingWaitsForWhatOnlyLooksLikeAFile(t *testing.T) {
	dir := realDir(t)
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	writer, err := unix.Open(fifo, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(writer)
	require.ErrorIs(t, workspace.HandleRead(dir, "fifo"), unix.EAGAIN)
	_, err = unix.Write(writer, []byte("x"))
	require.NoError(t, err)
	require.NoError(t, workspace.HandleRead(dir, "fifo"))
}

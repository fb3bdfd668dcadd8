//go:build unix

package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestC6_ReadFileDoesNotWaitForAFIFO(t *testing.T) {
	top := realDir(t)
	require.NoError(t, unix.Mkfifo(filepath.Join(top, "fifo"), 0o600))
	d := openTop(t, open(t, top))
	for _, kind := range []os.FileMode{0, os.ModeNamedPipe} { // it may have been a file when it was listed
		var special *workspace.SpecialFileError
		_, _, err := d.ReadFile(workspace.Entry{Name: "fifo", Type: kind}, nil, 100)
		require.ErrorAs(t, err, &special)
		require.Equal(t, "fifo", special.Kind)
	}
}

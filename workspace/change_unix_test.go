//go:build linux || darwin

package workspace_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

// Clause C6.
func TestMoveAndRemoveSpecialFiles(t *testing.T) {
	g := newGrounds(t)
	require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "fifo"), 0o644))
	require.ErrorIs(t, moveOnto(g.ws, "fifo"), fs.ErrExist)
	err := g.ws.Rename("fifo", "../B/fifo", workspace.Ref{}, workspace.Ref{})
	require.NoError(t, err)
	require.NoError(t, g.ws.Remove("../B/fifo", workspace.RemoveOptions{}))
	require.NotContains(t, picture(t, g.b), "fifo")
}

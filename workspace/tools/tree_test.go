package tools

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/testutil/dirtest"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fileTree is the files of a test by their slash-separated paths.
type fileTree = dirtest.Tree

// plant writes files into a new directory, and returns it with its links resolved.
func plant(tb testing.TB, files fileTree) string {
	tb.Helper()
	return files.Plant(tb)
}

// planted are the files below dir with their content.
func planted(tb testing.TB, dir string) fileTree {
	tb.Helper()
	return dirtest.Planted(tb, dir)
}

func symlink(tb testing.TB, target, path string) {
	tb.Helper()
	require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o700))
	if err := os.Symlink(target, path); err != nil {
		tb.Skip("no links here:", err)
	}
}

// openRoots opens directories as a workspace, cwd first.
func openRoots(tb testing.TB, cwd string, additional ...string) *workspace.Workspace {
	tb.Helper()
	return openWith(tb, workspace.Options{}, cwd, additional...)
}

func openWith(tb testing.TB, o workspace.Options, cwd string, additional ...string) *workspace.Workspace {
	tb.Helper()
	roots, err := workspace.NewRoots(cwd, additional)
	require.NoError(tb, err)
	ws, err := workspace.Open(context.Background(), roots, o)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, ws.Close()) })
	return ws
}

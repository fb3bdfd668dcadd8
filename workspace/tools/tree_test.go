package tools

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fileTree is the files of a test by their slash-separated paths.
type fileTree map[string]string

// plant writes files into a new directory, and returns it with its links resolved.
func plant(tb testing.TB, files fileTree) string {
	tb.Helper()
	top, err := filepath.EvalSymlinks(tb.TempDir())
	require.NoError(tb, err)
	plantIn(tb, top, files)
	return top
}

func plantIn(tb require.TestingT, top string, files fileTree) {
	for path, content := range files {
		path = filepath.Join(top, filepath.FromSlash(path))
		require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(tb, os.WriteFile(path, []byte(content), 0o600))
	}
}

// planted are the files below dir with their content.
func planted(tb testing.TB, dir string) fileTree {
	tb.Helper()
	found := make(fileTree)
	require.NoError(tb, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(rel)] = string(text)
		return err
	}))
	return found
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

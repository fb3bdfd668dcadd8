package changes_test

import (
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/history/changes"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, dirtest.InMemory()) }

// edits is the history of a session in which calls have changed files.
func edits(paths ...string) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		for i, path := range paths {
			if !yield(sessionstore.Update{Kind: sessionstore.ToolCall, Raw: []byte(`{"update":{"sessionUpdate":"tool_call",` +
				`"toolCallId":"` + strconv.Itoa(i) + `","title":"t","status":"completed","content":[{"type":"diff","path":"` + path +
				`","oldText":"a\n","newText":"b\nc\n"}]}}`)}, nil) {
				return
			}
		}
	}
}

func rootsOf(t *testing.T, paths ...string) (roots []workspace.Root) {
	for i, path := range paths {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		roots = append(roots, workspace.Root{Index: i, Dir: dir, Real: dir})
	}
	return roots
}

// A file in a folder that lies in another one is shown once. What calls named is marked, but only
// if it has changed, and of a folder without a snapshot it is all that is known.
func TestFoldersOfASession(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	top := dirtest.Tree{"app/a": "1\n", "app/sub/b": "1\n", "plain/c": "1\n"}.Plant(t)
	app, sub, plain := top+"/app", top+"/app/sub", top+"/plain"
	require.NoError(t, exec.CommandContext(t.Context(), "git", "-C", app, "init", "-q").Run())
	snapshots := worktree.NewSnapshots(t.TempDir())
	require.NoError(t, snapshots.Take(t.Context(), "id", []string{app, sub}))
	for _, file := range []string{"app/a", "app/sub/b", "app/sub/new"} {
		require.NoError(t, os.WriteFile(filepath.Join(top, file), []byte("2\n"), 0o600))
	}
	all, err := changes.OfSession(t.Context(), "id", rootsOf(t, app, sub, plain, app),
		edits(sub+"/b", plain+"/c", app+"/undone", top+"/outside", plain+"/c"), snapshots)
	require.NoError(t, err)
	require.Len(t, all, 3)
	changed := func(path string, added, removed int) worktree.FileChange {
		return worktree.FileChange{Path: path, Added: added, Removed: removed}
	}
	require.Equal(t, []changes.File{{FileChange: changed("a", 1, 1)}}, all[0].Files)
	require.Equal(t, []changes.File{{FileChange: changed("b", 1, 1), Named: true},
		{FileChange: changed("new", 1, 0)}}, all[1].Files)
	require.Equal(t, []changes.File{{FileChange: changed("c", 4, 2), Named: true}}, all[2].Files)
	require.Equal(t, "1 file, +4 -2, as tool calls reported: nothing was noted of it when the session began",
		all[2].Summary())
	patch, err := all[0].Patch(t.Context())
	require.NoError(t, err)
	require.NotContains(t, patch, "sub")

	require.NoError(t, os.RemoveAll(app))
	all, err = changes.OfSession(t.Context(), "id", rootsOf(t, app), edits(), snapshots)
	require.NoError(t, err)
	require.NotEmpty(t, all[0].Reported, "the folder is gone")
	require.Equal(t, []changes.File{}, all[0].Files)
}

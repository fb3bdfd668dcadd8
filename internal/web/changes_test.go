package web_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/web"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// begun makes a repository of a folder, and snapshots for a session that begins in it.
func begun(t testing.TB, session, folder string) worktree.Snapshots {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, args := range [][]string{{"init", "-q"}, {"config", "diff.noprefix", "true"}} {
		require.NoError(t, exec.CommandContext(t.Context(), "git", append([]string{"-C", folder}, args...)...).Run())
	}
	snapshots := worktree.NewSnapshots(t.TempDir())
	real, err := filepath.EvalSymlinks(folder)
	require.NoError(t, err)
	require.NoError(t, snapshots.Take(t.Context(), session, []string{real}))
	return snapshots
}

// The page shows what was changed in each folder, with as much of the diffs as a browser can show.
// Without snapshots it shows what calls reported.
func TestChangesOfASession(t *testing.T) {
	store, dir := memstore.New(t), t.TempDir()
	app := keys(t, dir, "app", "plain")
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("app/a", "1\n")
	snapshots := begun(t, "one", filepath.Join(dir, "app"))
	edit := func(id, path string) map[string]any {
		return map[string]any{"sessionUpdate": "tool_call", "toolCallId": id, "title": "Edit", "status": "completed", "content": []any{
			map[string]any{"type": "diff", "path": filepath.Join(dir, path), "oldText": "1\n", "newText": "2\n"}}}
	}
	conversation(t, store, sessionstore.Session{ID: "one", Agent: sessionstore.Agent{Kind: "explore"}, Keys: app}, "hi",
		edit("1", "app/a"), edit("2", "plain/b"))
	type folder struct {
		Folder, Summary string
		Files           []json.RawMessage
	}
	shown := func(o web.Options) (folders []folder, texts []string) {
		o.Store = store
		enter(t, serve(t, o)).get(&folders, "changes", "id", "one")
		for _, f := range folders {
			var all strings.Builder
			for _, file := range f.Files {
				all.Write(file)
			}
			texts = append(texts, all.String())
		}
		return folders, texts
	}
	folders, _ := shown(web.Options{Snapshots: snapshots})
	require.Len(t, folders, 2)
	require.Contains(t, folders[0].Summary, "nothing changed")

	write("app/a", "2\n")
	write("app/é \"x", "<b>\u202e\n")
	write("app/binary", "\x00")
	write("app/long", strings.Repeat("long\n", 100_000))
	folders, texts := shown(web.Options{Snapshots: snapshots})
	require.Equal(t, filepath.Join(dir, "app"), folders[0].Folder)
	require.Contains(t, folders[0].Summary, "4 files, +100002 -1 since")
	require.Regexp(t, `"details".*"text":"a".* \+1.* −1.* by the session.*"del".*-1\\n.*"ins".*\+2\\n`, string(folders[0].Files[0]))
	require.Regexp(t, `^{"tag":"p".*"binary".*" binary"`, string(folders[0].Files[1]))
	require.Contains(t, texts[0], `acp-agent diff SESSION --patch prints all`)
	require.Contains(t, string(folders[0].Files[3]), `+\u003cb\u003e�\n`)
	require.Less(t, len(texts[0]), 2<<20)
	require.Regexp(t, `^1 file, \+1 -1, as tool calls reported`, folders[1].Summary)

	for i := range 510 {
		write("app/"+strings.Repeat("n", i%250+1)+string(rune('a'+i/250)), "")
	}
	folders, _ = shown(web.Options{Snapshots: snapshots})
	require.Len(t, folders[0].Files, 500)
	require.Contains(t, folders[0].Summary, "514 files, ")
	require.Contains(t, folders[0].Summary, "the first 500 are shown")

	folders, texts = shown(web.Options{})
	require.Contains(t, folders[0].Summary, "1 file, +1 -1, as tool calls reported")
	require.NotContains(t, strings.Join(texts, ""), "binary")
}

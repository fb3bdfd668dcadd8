package tools

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestEditFile(t *testing.T) {
	app := plant(t, fileTree{"a": "x := 1\ny := 1\n", "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\n", "nul": "a\x00", "bom": "\ufeffx\n"})
	h := serve(t, openRoots(t, app), Options{limits: limits{fileSize: 100}})
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"path": "a", "old_text": "x := 1\n", "new_text": ""}, "y := 1\n"},
		{args{"path": "a", "old_text": "1", "new_text": "2", "replace_all": true}, "x := 2\ny := 2\n"},
		{args{"path": "crlf", "old_text": "a\nb", "new_text": "a\nc\nb"}, "a\r\nc\r\nb\r\n"},
		{args{"path": "mixed", "old_text": "b\n", "new_text": "c\n"}, "a\r\nc\n"},
		{args{"path": "bom", "old_text": "x", "new_text": "y"}, "\ufeffy\n"},
	} {
		path := filepath.Join(app, c.args["path"].(string))
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotEmpty(t, do[changedFile](h, "edit_file", c.args).Diff)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, c.want, string(after), c.args)
		require.NoError(t, os.WriteFile(path, before, 0o600))
	}
	before, asked := planted(t, app), len(h.asked)
	require.ErrorContains(t, h.refused("edit_file", args{"path": "a", "old_text": "1", "new_text": "2"}), "2 times, first in lines 1 and 2")
	require.ErrorContains(t, h.refused("edit_file", args{"path": "a", "old_text": "z", "new_text": "2"}), "does not contain the text")
	require.ErrorContains(t, h.refused("edit_file", args{"path": "mixed", "old_text": "a\nb", "new_text": "2"}), "does not contain the text")
	require.ErrorIs(t, h.refused("edit_file", args{"path": "new", "old_text": "z", "new_text": "2"}), fs.ErrNotExist)
	var no *workspace.NotTextError
	require.ErrorAs(t, h.refused("edit_file", args{"path": "nul", "old_text": "a", "new_text": "b"}), &no)
	var large *workspace.TooLargeError
	require.ErrorAs(t, h.refused("edit_file", args{"path": "a", "old_text": "x", "new_text": strings.Repeat("x", 100)}), &large)
	require.Len(t, h.asked, asked)
	require.Equal(t, before, planted(t, app))
}

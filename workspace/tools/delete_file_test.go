package tools

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestDeleteFile(t *testing.T) {
	app, lib := plant(t, fileTree{"a": "one\n", "nul": "\x00",
		"large": strings.Repeat("x", defaultMaxFileSize+1), "full/a": ""}), plant(
		t, fileTree{"b": "x\n"})
	require.NoError(t, os.Mkdir(filepath.Join(app, "empty"), 0o700))
	symlink(t, filepath.Join(lib, "b"), filepath.Join(app, "link"))
	h := serve(t, openRoots(t, app, lib), Options{})
	for path, want := range map[string]string{"a": "file", "nul": "file", "large": "file",
		"empty": "directory", "link": "link"} {
		require.Equal(t, location{filepath.Join(app, path), app}.String()+" was deleted ("+want+")\n",
			h.said("delete_file", args{"path": path}))
		_, err := os.Lstat(filepath.Join(app, path))
		require.ErrorIs(t, err, fs.ErrNotExist)
		change := h.asked[len(h.asked)-1]
		require.Equal(t, "delete "+want+" "+filepath.Join(app, path), change.String())
		if path == "a" {
			require.Equal(t, "--- "+filepath.Join(app,
				"a")+"\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", change.Diff())
		} else {
			require.Empty(t, change.Diff(), path)
		}
	}
	require.Equal(t, fileTree{"b": "x\n"}, planted(t, lib), "a link is deleted itself")

	asked := len(h.asked)
	err := h.refused("delete_file", args{"path": "full"})
	require.ErrorIs(t, err, syscall.ENOTEMPTY)
	require.ErrorContains(t, err, "Delete what is in it first")
	require.ErrorIs(t, h.refused("delete_file", args{"path": "missing"}), fs.ErrNotExist)
	var protected *workspace.ProtectedError
	require.ErrorAs(t, h.refused("delete_file", args{"path": "."}), &protected)
	require.Len(t, h.asked, asked)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.set.Call(cancelled, "delete_file", h.encode("delete_file", args{"path": "full/a"}))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, fileTree{"full/a": ""}, planted(t, app))
}

package tools

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListRoots(t *testing.T) {
	top := plant(t, fileTree{"app/a": "", "lib/b": ""})
	symlink(t, filepath.Join(top, "lib"), filepath.Join(top, "spelled"))
	app, lib, spelled := filepath.Join(top, "app"), filepath.Join(top, "lib"), filepath.Join(top,
		"spelled")
	ws := openRoots(t, app, spelled)
	h := serve(t, ws, Options{})
	require.Equal(t, rootList{Roots: []rootEntry{
		{0, app, app, "ok", ""}, {1, spelled, lib, "ok", ""},
	}}, do[rootList](h, "list_roots", nil))
	require.NoError(t, os.Rename(lib, filepath.Join(top, "away")))
	got := do[rootList](h, "list_roots", args{})
	require.Equal(t, []string{"ok", "moved"}, []string{got.Roots[0].State, got.Roots[1].State})
}

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
	first := "0: " + app + " [working directory: relative paths start here]\n"
	require.Equal(t, first+"1: "+spelled+" -> "+lib+"\n", h.said("list_roots", nil))
	require.NoError(t, os.Rename(lib, filepath.Join(top, "away")))
	require.Equal(t, first+"1: "+spelled+" -> "+lib+" [moved]\n", h.said("list_roots", args{}))
}

package tools

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileInfo(t *testing.T) {
	app := plant(t, fileTree{"b.txt": "12345", "d/x": ""})
	lib := plant(t, fileTree{"c": "x\n"})
	symlink(t, filepath.Join(lib, "c"), filepath.Join(app, "link"))
	h := serve(t, openRoots(t, app, lib), Options{})
	got := do[fileInfo](h, "file_info", args{"path": "b.txt"})
	require.Equal(t, location{filepath.Join(app, "b.txt"), app}, got.location)
	require.Equal(t, []any{"file", int64(5), ""}, []any{got.Type, got.Size, got.Link})
	got = do[fileInfo](h, "file_info", args{"path": "link"})
	require.Equal(t, location{filepath.Join(lib, "c"), lib}, got.location)
	require.Equal(t, filepath.Join(lib, "c"), got.Link)
	got = do[fileInfo](h, "file_info", args{"path": "d"})
	require.Equal(t, "directory", got.Type)
}

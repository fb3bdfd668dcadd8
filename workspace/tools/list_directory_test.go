package tools

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListDirectory(t *testing.T) {
	app := plant(t, fileTree{"b.txt": "12345", "a/x": "", "inner/y": ""})
	symlink(t, "b.txt", filepath.Join(app, "link"))
	inner := filepath.Join(app, "inner")
	h := serve(t, openRoots(t, app, inner), Options{})
	want := directoryList{location: location{app, app}, Entries: []directoryEntry{
		{"a", "directory", 0, ""}, {"b.txt", "file", 5, ""}, {"inner", "directory", 0,
			inner}, {"link", "link", 0, ""},
	}}
	require.Equal(t, want, do[directoryList](h, "list_directory", args{}))
	require.Equal(t, want, do[directoryList](h, "list_directory", args{"path": app}))
	require.Equal(t, location{inner, inner}, do[directoryList](h, "list_directory",
		args{"path": "inner"}).location)
	require.ErrorContains(t, h.refused("list_directory", args{"path": "b.txt"}),
		"not a directory. Use read_file")

	cut := do[directoryList](serve(t, openRoots(t, app), Options{limits: limits{entries: 2}}),
		"list_directory", args{})
	require.Len(t, cut.Entries, 2)
	require.Equal(t, "b.txt", cut.Cut.After)
	require.Equal(t, int64(2), cut.Cut.Bound)
	cut = do[directoryList](serve(t, openRoots(t, app), Options{limits: limits{bytes: 6}}),
		"list_directory", args{})
	require.Len(t, cut.Entries, 2)
	require.Equal(t, "bytes", cut.Cut.Limit)
}

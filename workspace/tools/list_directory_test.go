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
	want := location{app, app}.String() + ", 4 entries\na/\nb.txt (5 bytes)\ninner/ (folder " +
		inner + ")\nlink (link)\n"
	require.Equal(t, want, h.said("list_directory", args{}))
	require.Equal(t, want, h.said("list_directory", args{"path": app}))
	require.Equal(t, location{inner, inner}.String()+", 1 entry\ny (0 bytes)\n",
		h.said("list_directory", args{"path": "inner"}))
	require.ErrorContains(t, h.refused("list_directory", args{"path": "b.txt"}),
		"not a directory. Use read_file")

	for limit, of := range map[string]limits{"2 entries": {entries: 2}, "20 bytes": {bytes: 20}} {
		cut := serve(t, openRoots(t, app), Options{limits: of}).said("list_directory", args{})
		require.Contains(t, cut, "a/\nb.txt (5 bytes)\n[truncated after b.txt: the limit of "+limit)
	}
}

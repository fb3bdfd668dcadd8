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
	got := h.said("file_info", args{"path": "b.txt"})
	require.Contains(t, got, location{filepath.Join(app, "b.txt"), app}.String()+
		"\ntype: file\nsize: 5 bytes\n")
	require.NotContains(t, got, "link")
	got = h.said("file_info", args{"path": "link"})
	require.Contains(t, got, location{filepath.Join(lib, "c"), lib}.String())
	require.Contains(t, got, "\nlink to: "+filepath.Join(lib, "c")+"\n")
	require.Contains(t, h.said("file_info", args{"path": "d"}), "\ntype: directory\n")
}

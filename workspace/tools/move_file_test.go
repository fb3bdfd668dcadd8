package tools

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestMoveFile(t *testing.T) {
	app, lib := plant(t, fileTree{"a": "one\n", "d/b": "two\n", "c": "three\n"}), plant(t,
		fileTree{"e/f": ""})
	symlink(t, filepath.Join(lib, "e"), filepath.Join(app, "link"))
	h := serve(t, openRoots(t, app, lib), Options{})
	in := func(root, name string) location { return location{filepath.Join(root, name), root} }
	for _, c := range []struct {
		path, to string
		at       location
		what     string
	}{
		{"a", "renamed", in(app, "renamed"), "file"},
		{"renamed", "link/a", in(lib, "e/a"), "file"},
		{"d", "moved", in(app, "moved"), "directory"},
		{"link", "other", in(app, "other"), "link"},
	} {
		from := in(app, c.path)
		require.Equal(t, fmt.Sprintf("%s was moved to %s (%s)\n", from, c.at, c.what),
			h.said("move_file", args{"path": c.path, "to": c.to}))
		change := h.asked[len(h.asked)-1]
		require.Equal(t, "move "+c.what+" "+from.Path+" to "+c.at.Path, change.String())
		require.Empty(t, change.Diff())
	}
	require.Equal(t, fileTree{"e/f": "", "e/a": "one\n"}, planted(t, lib))

	asked := len(h.asked)
	require.ErrorIs(t, h.refused("move_file", args{"path": "c", "to": "moved"}), fs.ErrExist)
	require.ErrorIs(t, h.refused("move_file", args{"path": "c", "to": "moved/b"}), fs.ErrExist,
		"nothing is replaced")
	require.ErrorContains(t, h.refused("move_file", args{"path": "c", "to": "moved"}),
		"choose a path that does not exist")
	require.ErrorIs(t, h.refused("move_file", args{"path": "missing", "to": "new"}), fs.ErrNotExist)
	require.NotContains(t, h.refused("move_file", args{"path": "missing", "to": "new"}).Error(),
		"create_directory")
	require.ErrorIs(t, h.refused("move_file", args{"path": "c", "to": "no/new"}), fs.ErrNotExist)
	require.ErrorContains(t, h.refused("move_file", args{"path": "c", "to": "no/new"}),
		"create_directory creates one")
	var protected *workspace.ProtectedError
	require.ErrorAs(t, h.refused("move_file", args{"path": ".", "to": "new"}), &protected)
	require.Len(t, h.asked, asked)
	require.ErrorIs(t, h.refused("move_file", args{"path": "moved", "to": "moved/in"}),
		syscall.EINVAL)
	require.Equal(t, "three\n", planted(t, app)["c"])
}

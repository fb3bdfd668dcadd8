package workspace_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestMkdir(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "across"))
	for path, want := range map[string]string{
		"new": "A/new", "new2/": "A/new2", "./d//new": "A/d/new", "../B/new": "B/new", filepath.Join(g.b, "new2"): "B/new2",
		"across/new": "B/d/new", "across/../new3": "B/new3", "-p": "A/-p",
	} {
		ref, err := g.ws.Mkdir(path, 0o755, workspace.MkdirOptions{})
		require.NoError(t, err, path)
		require.Equal(t, filepath.Join(g.dir, want), ref.Path())
		require.DirExists(t, filepath.Join(g.dir, want))
	}
	before := picture(t, g.dir)
	for path, want := range map[string]error{
		"f": fs.ErrExist, "d": fs.ErrExist, "d/": fs.ErrExist, ".": fs.ErrExist, "d/..": fs.ErrExist, "across": fs.ErrExist,
		g.b: fs.ErrExist, "no/new": fs.ErrNotExist, "f/new": syscall.ENOTDIR, "no/..": fs.ErrNotExist, "": fs.ErrInvalid,
		"a\x00": fs.ErrInvalid, strings.Repeat("n", 256): syscall.ENAMETOOLONG,
	} {
		_, err := g.ws.Mkdir(path, 0o755, workspace.MkdirOptions{})
		require.ErrorIs(t, err, want, path)
	}
	_, err := g.ws.Mkdir("sticky", 0o1777, workspace.MkdirOptions{})
	require.Error(t, err)
	require.Equal(t, before, picture(t, g.dir))
}

func TestMkdirAll(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "across"))
	link(t, "nothing", filepath.Join(g.a, "dangling"))
	for path, want := range map[string]string{
		"x/y/z": "A/x/y/z", "across/x/y/": "B/d/x/y", "d": "A/d", "d/e/": "A/d/e", ".": "A", "p/../q/./r": "A/q/r",
		g.b + "/x/y": "B/x/y", "across": "B/d",
	} {
		ref, err := g.ws.MkdirAll(path, 0o755)
		require.NoError(t, err, path)
		require.Equal(t, filepath.Join(g.dir, want), ref.Path())
		require.DirExists(t, filepath.Join(g.dir, want))
	}
	require.DirExists(t, filepath.Join(g.a, "p"))
	for path, want := range map[string]error{
		"f": syscall.ENOTDIR, "f/x/y": syscall.ENOTDIR, "dangling": fs.ErrExist, "dangling/x": fs.ErrExist,
	} {
		_, err := g.ws.MkdirAll(path, 0o755)
		require.ErrorIs(t, err, want, path)
	}
	var outside *workspace.OutsideError
	_, err := g.ws.MkdirAll("../out/x/y", 0o755)
	require.ErrorAs(t, err, &outside)
	var limit *workspace.LimitError
	_, err = g.ws.MkdirAll(strings.Repeat("n/", 300), 0o755)
	require.ErrorAs(t, err, &limit)
	require.NoDirExists(t, filepath.Join(g.a, "n"))
}

func TestC9_DeepDirectoriesAreMade(t *testing.T) {
	g := newGrounds(t)
	name := strings.Repeat("d", 200)
	names := strings.Repeat(name+"/", 30) // 6,000 bytes, beyond PATH_MAX
	_, err := g.ws.MkdirAll(names, 0o755)
	require.NoError(t, err)
	_, err = put(g.ws, names+"f", "deep")
	require.NoError(t, err)
	requireRead(t, g.ws, names+"f", "deep", 0, names+"f")
	require.NoError(t, g.ws.RemoveAll(t.Context(), name, workspace.RemoveOptions{}))
	require.NotContains(t, picture(t, g.a), name)
}

func TestA6_NothingIsMadeRemovedOrMovedInADeniedDirectory(t *testing.T) {
	g := newGrounds(t)
	write(t, filepath.Join(g.a, "x/denied/f"), "SECRET")
	link(t, "x/denied", filepath.Join(g.a, "l"))
	missing := filepath.Join(g.a, "not/yet")
	ws := openWith(t, workspace.Options{Policy: workspace.Policy{Deny: dirs(t, filepath.Join(g.a, "x/denied"), missing)}}, g.a, g.b)
	mkdir(t, filepath.Dir(missing))
	before := picture(t, g.dir)
	var denied *workspace.DeniedError
	for _, path := range []string{"x/denied/f", "x/denied/new", "l/f", "l/new", "not/yet", "../B/../A/x/denied/f"} {
		for name, change := range changes {
			err := change(ws, path)
			if (name == "MkdirAll" || name == "RemoveAll") && errors.Is(err, syscall.ENOTDIR) {
				continue // the file is in the way
			}
			if !strings.HasSuffix(path, "f") && errors.Is(err, fs.ErrNotExist) {
				continue // there is nothing
			}
			if name == "RemoveAll" && err == nil {
				continue // there is nothing
			}
			require.ErrorAs(t, err, &denied, "%s %s", name, path)
		}
	}
	var protected *workspace.ProtectedError
	for _, path := range []string{"x", "x/", "./x"} {
		require.ErrorAs(t, ws.RemoveAll(t.Context(), path, workspace.RemoveOptions{}), &protected)
		_, err := ws.Rename(t.Context(), path, "y", workspace.RenameOptions{})
		require.ErrorAs(t, err, &protected)
	}
	_, err := ws.MkdirAll("not/yet/more", 0o755)
	require.ErrorAs(t, err, &denied)
	require.Equal(t, before, picture(t, g.dir))
}

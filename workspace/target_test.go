package workspace_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestTargets(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "across"))
	link(t, g.out, filepath.Join(g.a, "away"))
	before := picture(t, g.dir)

	ref, err := g.ws.MkdirTarget("across/new")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(g.b, "d/new"), ref.Path())
	info, err := g.ws.RemoveTarget("away")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(g.a, "away"), info.Ref().Path(), "the link itself")
	require.Equal(t, fs.ModeSymlink, info.Mode().Type())
	info, ref, err = g.ws.RenameTarget("f", "across/new")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(g.a, "f"), info.Ref().Path())
	require.Equal(t, filepath.Join(g.b, "d/new"), ref.Path())

	var outside *workspace.OutsideError
	_, err = g.ws.MkdirTarget("away/new")
	require.ErrorAs(t, err, &outside)
	_, err = g.ws.RemoveTarget("away/secret")
	require.ErrorAs(t, err, &outside)
	_, _, err = g.ws.RenameTarget("f", "away/new")
	require.ErrorAs(t, err, &outside)
	_, err = g.ws.MkdirTarget("d")
	require.ErrorIs(t, err, fs.ErrExist)
	_, _, err = g.ws.RenameTarget("f", "d")
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = g.ws.RemoveTarget("missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	var protected *workspace.ProtectedError
	_, err = g.ws.RemoveTarget(".")
	require.ErrorAs(t, err, &protected)
	require.Equal(t, before, picture(t, g.dir))
}

func TestC11_MkdirFailsIfItsPathLeadsElsewhere(t *testing.T) {
	g := newGrounds(t)
	at, err := g.ws.MkdirTarget("d/new")
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(g.a, "d"), filepath.Join(g.a, "away")))
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "d"))
	_, err = g.ws.Mkdir("d/new", 0o755, workspace.MkdirOptions{At: at})
	var moved *workspace.MovedError
	require.ErrorAs(t, err, &moved)
	require.NoDirExists(t, filepath.Join(g.b, "d/new"))
}

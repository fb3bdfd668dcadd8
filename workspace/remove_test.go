package workspace_test

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

var nowhere workspace.RemoveOptions

func TestRemove(t *testing.T) {
	g := newGrounds(t)
	mkdir(t, filepath.Join(g.a, "empty"))
	mkdir(t, filepath.Join(g.a, "empty2"))
	want := picture(t, g.dir)
	for _, path := range []string{"empty", "empty2/", "f", "../B/f", filepath.Join(g.b, "d/f")} {
		require.NoError(t, g.ws.Remove(path, nowhere), path)
	}
	for _, gone := range []string{"A/empty", "A/empty2", "A/f", "B/f", "B/d/f"} {
		delete(want, gone)
	}
	require.Equal(t, want, picture(t, g.dir))
	for path, err := range map[string]error{
		"d": syscall.ENOTEMPTY, "f": fs.ErrNotExist, "no/f": fs.ErrNotExist, "d/e/f/": syscall.ENOTDIR, "": fs.ErrInvalid,
	} {
		require.ErrorIs(t, g.ws.Remove(path, nowhere), err, path)
	}
	require.Equal(t, want, picture(t, g.dir))
}

func TestC4_OnlyLinksThemselvesAreRemoved(t *testing.T) {
	g := newGrounds(t)
	want := picture(t, g.dir)
	targets := map[string]string{
		"to-out": g.out, "to-secret": filepath.Join(g.out, "secret"), "dangling": filepath.Join(g.out, "no"), "to-d": "d",
		"across": filepath.Join(g.b, "d"), "loop": "loop",
	}
	for name, target := range targets {
		link(t, target, filepath.Join(g.a, name))
		for _, end := range []string{"/", "//", "/."} {
			require.ErrorIs(t, g.ws.Remove(name+end, nowhere), syscall.ENOTDIR, name+end)
			require.ErrorIs(t, g.ws.RemoveAll(t.Context(), name+end, nowhere), syscall.ENOTDIR, name+end)
			_, err := g.ws.Rename(t.Context(), name+end, "moved", workspace.RenameOptions{})
			require.ErrorIs(t, err, syscall.ENOTDIR, name+end)
		}
		require.NoError(t, g.ws.Remove(name, nowhere))
		link(t, target, filepath.Join(g.a, name))
		require.NoError(t, g.ws.RemoveAll(t.Context(), name, nowhere))
	}
	require.Equal(t, want, picture(t, g.dir))
}

func TestRemoveAll(t *testing.T) {
	g := newGrounds(t)
	link(t, g.out, filepath.Join(g.a, "d/to-out"))
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "d/e/across"))
	write(t, filepath.Join(g.a, "d/"+strings.Repeat("deep/", 100)+"f"), "x")
	require.NoError(t, g.ws.RemoveAll(t.Context(), "d/", nowhere))
	require.NoError(t, g.ws.RemoveAll(t.Context(), "d", nowhere), "there is nothing")
	require.NoError(t, g.ws.RemoveAll(t.Context(), "d/e/f", nowhere))
	require.NoError(t, g.ws.RemoveAll(t.Context(), "f", nowhere))
	require.Equal(t, map[string]string{
		".": "d---------", "A": "d---------", "B": "d---------", "B/f": "B/f", "B/d": "d---------", "B/d/f": "B/d/f",
		"out": "d---------", "out/secret": "SECRET",
	}, picture(t, g.dir))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(syscall.ECANCELED)
	require.ErrorIs(t, g.ws.RemoveAll(ctx, "../B/d", nowhere), syscall.ECANCELED)
	require.DirExists(t, filepath.Join(g.b, "d"))
}

func TestC1_NoRootIsRemovedMovedOrReplaced(t *testing.T) {
	dir := realDir(t)
	outer, inner := filepath.Join(dir, "outer"), filepath.Join(dir, "outer/x/inner")
	write(t, filepath.Join(inner, "f"), "inner")
	write(t, filepath.Join(outer, "f"), "outer")
	mkdir(t, filepath.Join(outer, "empty"))
	link(t, "x/inner", filepath.Join(outer, "spelled"))
	other := mkdir(t, filepath.Join(dir, "other"))
	ws := open(t, outer, filepath.Join(outer, "spelled"), other)
	before := picture(t, dir)
	for _, path := range []string{
		".", "./", outer, outer + "/", "../outer", "x/..", "x", "x/", inner, inner + "/.", "x/inner", "spelled", "../other", other,
		other + "/../outer", "x/inner/..",
	} {
		var protected *workspace.ProtectedError
		require.ErrorAs(t, ws.Remove(path, nowhere), &protected, path)
		require.ErrorAs(t, ws.RemoveAll(t.Context(), path, nowhere), &protected, path)
		for _, to := range []string{"y", "../other/y"} {
			_, err := ws.Rename(t.Context(), path, to, workspace.RenameOptions{})
			require.ErrorAs(t, err, &protected, path)
		}
		for _, from := range []string{"f", "empty"} {
			_, err := ws.Rename(t.Context(), from, path, workspace.RenameOptions{})
			require.Error(t, err, path)
		}
		require.Equal(t, before, picture(t, dir), path)
	}
	require.Contains(t, ws.Remove("spelled", nowhere).Error(), "stays where it is")
	var outside *workspace.OutsideError
	for _, path := range []string{"..", "/", dir, dir + "/", "../.."} {
		require.ErrorAs(t, ws.RemoveAll(t.Context(), path, nowhere), &outside, path)
	}
}

// A root inside another stays a root wherever somebody moves it.
func TestC8_AMovedRootIsNotRemovedEither(t *testing.T) {
	outer := realDir(t)
	inner := filepath.Join(outer, "inner")
	write(t, filepath.Join(inner, "f"), "inner")
	ws := open(t, outer, inner)
	require.NoError(t, os.Mkdir(filepath.Join(outer, "d"), 0o755))
	require.NoError(t, os.Rename(inner, filepath.Join(outer, "d/moved")))
	var protected *workspace.ProtectedError
	require.ErrorAs(t, ws.RemoveAll(t.Context(), "d/moved", nowhere), &protected)
	require.ErrorAs(t, ws.RemoveAll(t.Context(), "d", nowhere), &protected)
	_, err := ws.Rename(t.Context(), "d/moved", "y", workspace.RenameOptions{})
	require.ErrorAs(t, err, &protected)
	requireRead(t, ws, inner+"/f", "inner", 1, "f")
}

func TestC11_WhatIsElsewhereByNowIsNotRemoved(t *testing.T) {
	g := newGrounds(t)
	link(t, "d", filepath.Join(g.a, "l"))
	shown, err := g.ws.Lstat("l/e")
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(g.a, "l")))
	link(t, g.b, filepath.Join(g.a, "l"))
	write(t, filepath.Join(g.b, "e/f"), "x")
	before := picture(t, g.dir)
	var moved *workspace.MovedError
	require.ErrorAs(t, g.ws.RemoveAll(t.Context(), "l/e", workspace.RemoveOptions{At: shown.Ref()}), &moved)
	_, err = g.ws.Rename(t.Context(), "l/e", "x", workspace.RenameOptions{From: shown.Ref()})
	require.ErrorAs(t, err, &moved)
	_, err = g.ws.Rename(t.Context(), "f", "l/new", workspace.RenameOptions{To: shown.Ref()})
	require.ErrorAs(t, err, &moved)
	_, err = g.ws.Append(t.Context(), "l/e/f", []byte("x"), workspace.InPlaceOptions{At: shown.Ref()})
	require.ErrorAs(t, err, &moved)
	_, err = g.ws.Append(t.Context(), "l/new", []byte("x"), workspace.InPlaceOptions{At: shown.Ref()})
	require.ErrorAs(t, err, &moved)
	require.ErrorIs(t, g.ws.RemoveAll(t.Context(), "gone", workspace.RemoveOptions{At: shown.Ref()}), fs.ErrNotExist)
	require.Equal(t, before, picture(t, g.dir))
}

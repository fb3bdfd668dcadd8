//go:build linux || darwin

package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestC6_SpecialFilesLoseTheirNamesUnopened(t *testing.T) {
	g := newGrounds(t)
	require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "d/fifo"), 0o644))
	require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "fifo"), 0o644))
	before := picture(t, g.dir)
	var special *workspace.SpecialFileError
	_, err := g.ws.RenameByCopy(t.Context(), "d", "../B/new", workspace.RenameOptions{})
	require.ErrorAs(t, err, &special, "a copy would have to open it")
	require.Equal(t, before, picture(t, g.dir))
	require.ErrorAs(t, moveOnto(g.ws, "fifo", workspace.RenameOptions{}), &special)
	require.Equal(t, before, picture(t, g.dir))

	_, err = g.ws.Rename(t.Context(), "fifo", "../B/fifo", workspace.RenameOptions{})
	require.NoError(t, err)
	require.NoError(t, g.ws.Remove("../B/fifo", nowhere))
	require.NoError(t, g.ws.RemoveAll(t.Context(), "d", nowhere))
	require.NoDirExists(t, filepath.Join(g.a, "d"))
}

// lock makes a directory that an ordinary user cannot remove anything from, until the test ends.
func lock(t *testing.T, dir string) {
	require.NoError(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() {
		_ = filepath.WalkDir(filepath.Dir(filepath.Dir(dir)), func(path string, d fs.DirEntry, _ error) error {
			if d.IsDir() {
				_ = os.Chmod(path, 0o755)
			}
			return nil
		})
	})
}

func TestRemoveAllGoesOnAfterWhatItCannotRemove(t *testing.T) {
	if os.Geteuid() == 0 && asUser(t, openToAll(t)) {
		return
	}
	g := newGrounds(t)
	for _, path := range []string{"x/1", "x/locked/2", "x/z/3"} {
		write(t, filepath.Join(g.a, path), "text")
	}
	lock(t, filepath.Join(g.a, "x/locked"))
	err := g.ws.RemoveAll(t.Context(), "x", nowhere)
	require.ErrorIs(t, err, fs.ErrPermission)
	var pathError *fs.PathError
	require.ErrorAs(t, err, &pathError)
	require.Equal(t, filepath.Join(g.a, "x/locked/2"), pathError.Path, "the first that failed")
	require.FileExists(t, filepath.Join(g.a, "x/locked/2"))
	require.NoFileExists(t, filepath.Join(g.a, "x/1"))
	require.NoDirExists(t, filepath.Join(g.a, "x/z"))
}

func TestRenameByACopySaysWhatItLeft(t *testing.T) {
	if os.Geteuid() == 0 && asUser(t, openToAll(t)) {
		return
	}
	g := newGrounds(t)
	write(t, filepath.Join(g.a, "x/locked/f"), "text")
	lock(t, filepath.Join(g.a, "x/locked"))
	ref, err := g.ws.RenameByCopy(t.Context(), "x", "../B/x", workspace.RenameOptions{})
	var left *workspace.LeftoverError
	require.ErrorAs(t, err, &left)
	require.True(t, errors.Is(err, fs.ErrPermission))
	require.Equal(t, filepath.Join(g.b, "x"), ref.Path(), "it is moved all the same")
	requireRead(t, g.ws, "../B/x/locked/f", "text", 1, "x/locked/f")
	require.NoDirExists(t, filepath.Join(g.a, "x"))
	require.FileExists(t, filepath.Join(left.At.Path(), "locked/f"))
	require.Contains(t, err.Error(), "delete "+left.At.Path())
	lock(t, filepath.Join(g.b, "x/locked"))
}

func TestRenameByACopyThatFailsLeavesNothing(t *testing.T) {
	if os.Geteuid() == 0 && asUser(t, openToAll(t)) {
		return
	}
	g := newGrounds(t)
	before := picture(t, g.dir)
	require.NoError(t, os.Chmod(filepath.Join(g.a, "d/e/f"), 0))
	_, err := g.ws.RenameByCopy(t.Context(), "d", "../B/new", workspace.RenameOptions{})
	require.ErrorIs(t, err, fs.ErrPermission, "it cannot be read")
	require.NoError(t, os.Chmod(filepath.Join(g.a, "d/e/f"), 0o644))
	require.Equal(t, before, picture(t, g.dir))
	require.NoError(t, os.Chmod(g.a, 0o555))
	_, err = g.ws.RenameByCopy(t.Context(), "d", "../B/new", workspace.RenameOptions{})
	require.NoError(t, os.Chmod(g.a, 0o755))
	require.ErrorIs(t, err, fs.ErrPermission, "it cannot be taken away")
	require.Equal(t, before, picture(t, g.dir))
}

package workspace_test

import (
	"errors"
	"io/fs"
	"os"
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
	link(t, "nothing", filepath.Join(g.a, "dangling"))
	for path, want := range map[string]string{
		"new": "A/new", "new2/": "A/new2", "./d//new": "A/d/new", "../B/new": "B/new", filepath.Join(g.b, "new2"): "B/new2",
		"across/new": "B/d/new", "across/../new3": "B/new3", "-p": "A/-p",
	} {
		target, err := g.ws.MkdirTarget(path)
		require.NoError(t, err, path)
		require.NoError(t, g.ws.Mkdir(path, target), path)
		require.Equal(t, filepath.Join(g.dir, want), target.Path())
		require.DirExists(t, filepath.Join(g.dir, want))
	}
	before := picture(t, g.dir)
	for path, want := range map[string]error{
		"f": fs.ErrExist, "d": fs.ErrExist, "d/": fs.ErrExist, ".": fs.ErrExist, "d/..": fs.ErrExist, "across": fs.ErrExist,
		"dangling": fs.ErrExist, g.b: fs.ErrExist, "no/new": fs.ErrNotExist, "f/new": syscall.ENOTDIR, "no/..": fs.ErrNotExist,
		"": fs.ErrInvalid, "a\x00": fs.ErrInvalid, strings.Repeat("n", 256): syscall.ENAMETOOLONG,
	} {
		err := g.ws.Mkdir(path, workspace.Ref{})
		require.ErrorIs(t, err, want, path)
	}
	require.Equal(t, before, picture(t, g.dir))
}

// Clause C9.
func TestDeepDirectories(t *testing.T) {
	g := newGrounds(t)
	name := strings.Repeat("d", 200)
	deep := ""
	for range 30 { // 6,000 bytes, beyond PATH_MAX
		deep += name + "/"
		err := g.ws.Mkdir(deep, workspace.Ref{})
		require.NoError(t, err)
	}
	_, err := put(g.ws, deep+"f", "deep")
	require.NoError(t, err)
	requireRead(t, g.ws, deep+"f", "deep", 0, deep+"f")
	require.NoError(t, g.ws.Remove(deep+"f", workspace.RemoveOptions{}))
	require.NoError(t, g.ws.Remove(deep, workspace.RemoveOptions{}))
}

func TestRenameRefuses(t *testing.T) {
	g := newGrounds(t)
	mkdir(t, filepath.Join(g.a, "empty"))
	link(t, g.out, filepath.Join(g.a, "to-out"))
	link(t, "d", filepath.Join(g.a, "to-d"))
	before := picture(t, g.dir)
	var outside *workspace.OutsideError
	for _, c := range []struct {
		from, to string
		want     error
	}{
		{"no", "x", fs.ErrNotExist},
		{"f", "no/x", fs.ErrNotExist},
		{"f", "empty", fs.ErrExist},
		{"d", "f", fs.ErrExist},
		{"f", "f", fs.ErrExist},
		{"f", "x/", syscall.ENOTDIR},
		{"f/", "x", syscall.ENOTDIR},
		{"f", "to-d", fs.ErrExist},
		{"f", "to-d/", fs.ErrExist},
		{"empty", "d", fs.ErrExist},
		{"d", "d/e/x", syscall.EINVAL},
		{"d", "to-d/x", syscall.EINVAL},
		{"f", "../B/f", fs.ErrExist},
		{"", "x", fs.ErrInvalid},
		{"f", "x\x00", fs.ErrInvalid},
		{"f", "../out/x", nil},
		{"../out/secret", "x", nil},
		{"to-out/secret", "x", nil},
		{"f", "to-out/x", nil},
	} {
		err := g.ws.Rename(c.from, c.to, workspace.Ref{}, workspace.Ref{})
		if c.want == nil {
			require.ErrorAs(t, err, &outside, "%s to %s", c.from, c.to)
		} else {
			require.ErrorIs(t, err, c.want, "%s to %s", c.from, c.to)
		}
		require.Equal(t, before, picture(t, g.dir), "%s to %s", c.from, c.to)
	}
}

func TestRenameBetweenFileSystems(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "workspace")
	if err != nil {
		t.Skip("there is no second file system:", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	root := realDir(t)
	write(t, filepath.Join(root, "f"), "text")
	if err := os.Rename(filepath.Join(root, "f"), filepath.Join(other, "f")); !errors.Is(err,
		syscall.EXDEV) {
		t.Skip("there is no second file system:", err)
	}
	ws := open(t, root, other)
	err = ws.Rename("f", filepath.Join(other, "f"), workspace.Ref{}, workspace.Ref{})
	require.ErrorIs(t, err, syscall.EXDEV)
	requireRead(t, ws, "f", "text", 0, "f")
}

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

// A root inside another stays protected wherever it is moved.
//
// Clause C8.
func TestMovedRootsAreProtected(t *testing.T) {
	outer := realDir(t)
	inner := filepath.Join(outer, "inner")
	write(t, filepath.Join(inner, "f"), "inner")
	ws := open(t, outer, inner)
	require.NoError(t, os.Mkdir(filepath.Join(outer, "d"), 0o755))
	require.NoError(t, os.Rename(inner, filepath.Join(outer, "d/moved")))
	var protected *workspace.ProtectedError
	require.ErrorAs(t, ws.Remove("d/moved", workspace.RemoveOptions{}), &protected)
	err := ws.Rename("d/moved", "y", workspace.Ref{}, workspace.Ref{})
	require.ErrorAs(t, err, &protected)
	requireRead(t, ws, inner+"/f", "inner", 1, "f")
}

// Clause C11.
func TestMovedTargets(t *testing.T) {
	g := newGrounds(t)
	mkdir(t, filepath.Join(g.a, "d/empty"))
	link(t, "d", filepath.Join(g.a, "l"))
	shown, free, err := g.ws.RenameTarget("l/empty", "l/new")
	require.NoError(t, err)
	file, err := g.ws.Fs().Create("l/new")
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(g.a, "l")))
	link(t, g.b, filepath.Join(g.a, "l"))
	mkdir(t, filepath.Join(g.b, "empty"))
	before := picture(t, g.dir)
	var moved *workspace.MovedError
	require.ErrorAs(t, g.ws.Remove("l/empty", workspace.RemoveOptions{At: shown.Ref()}), &moved)
	err = g.ws.Rename("l/empty", "x", shown.Ref(), workspace.Ref{})
	require.ErrorAs(t, err, &moved)
	err = g.ws.Rename("f", "l/new", workspace.Ref{}, free)
	require.ErrorAs(t, err, &moved)
	err = g.ws.Mkdir("l/new", free)
	require.ErrorAs(t, err, &moved)
	require.ErrorAs(t, file.Close(), &moved)
	_, err = g.ws.WriteFile(t.Context(), "l/new", nil, workspace.WriteOptions{At: free})
	require.ErrorAs(t, err, &moved)
	require.Equal(t, filepath.Join(g.a, "d/new"), moved.Was.Path())
	require.Equal(t, filepath.Join(g.b, "new"), moved.Now.Path())
	require.Contains(t, err.Error(), moved.Now.Path())
	require.Equal(t, before, picture(t, g.dir))
}

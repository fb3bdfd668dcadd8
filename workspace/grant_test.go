package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/workspace"
)

// Nothing is changed in a root that may only be read, by whatever way it is reached, and what could
// be asked before says why.
//
// Clause A39.
func TestReadOnlyRoots(t *testing.T) {
	top := realDir(t)
	app, dep := filepath.Join(top, "app"), filepath.Join(top, "dep")
	inner, alias := filepath.Join(dep, "inner"), filepath.Join(top, "alias")
	write(t, filepath.Join(app, "f"), "of app")
	write(t, filepath.Join(dep, "f"), "of dep")
	write(t, filepath.Join(dep, "d/f"), "of dep")
	write(t, filepath.Join(inner, "f"), "of inner")
	link(t, dep, alias)
	link(t, "../dep/f", filepath.Join(app, "to-f"))
	link(t, "../dep/new", filepath.Join(app, "to-new"))
	link(t, "../dep", filepath.Join(app, "to-dep"))
	require.NoError(t, os.Link(filepath.Join(dep, "f"), filepath.Join(app, "hard")))
	// The client names the folder in another spelling, too.
	roots := mustRoots(t, app, dep, alias, inner).Granting(func(dir workspace.Dir) workspace.Grant {
		if dir.String() == dep {
			return workspace.ReadOnly
		}
		return workspace.ReadWrite
	})
	require.Len(t, roots.ReadOnly(), 1)
	ws, err := workspace.Open(t.Context(), roots, workspace.Options{})
	require.NoError(t, err)
	defer ws.Close()
	for i, want := range []workspace.Grant{workspace.ReadWrite, workspace.ReadOnly, workspace.ReadOnly,
		workspace.ReadWrite} {
		require.Equal(t, want, ws.Root(i).Grant)
	}
	before := dirtest.Planted(t, dep)
	ctx := t.Context()
	in := func(err error, what string) {
		t.Helper()
		require.ErrorContains(t, err, "is read-only", what)
	}
	for _, path := range []string{dep + "/f", dep + "/new", "../dep/f", "../app/../dep/./f", "to-f", "to-new",
		"to-dep/f", "to-dep/d/new", alias + "/f", dep + "/inner/../f"} {
		_, err := ws.WriteFile(ctx, path, []byte("x"), workspace.WriteOptions{})
		in(err, path)
		_, err = ws.WriteTarget(path)
		in(err, path)
		_, err = ws.LockFile(ctx, path)
		in(err, path)
		_, err = ws.Fs().Create(path)
		in(err, path)
	}
	for _, path := range []string{dep + "/new", "to-dep/new", alias + "/d/new"} {
		err := ws.Mkdir(path, workspace.Ref{})
		in(err, path)
		_, err = ws.MkdirTarget(path)
		in(err, path)
	}
	for _, path := range []string{dep + "/f", "../dep/d", "to-dep/f", alias + "/d/f"} {
		in(ws.Remove(path, workspace.RemoveOptions{}), path)
		_, err := ws.RemoveTarget(path)
		in(err, path)
		err = ws.Rename(path, "moved", workspace.Ref{}, workspace.Ref{})
		in(err, path)
		_, _, err = ws.RenameTarget(path, "moved")
		in(err, path)
	}
	err = ws.Rename("f", dep+"/moved", workspace.Ref{}, workspace.Ref{})
	in(err, "into it")
	err = ws.Rename("f", "to-dep/moved", workspace.Ref{}, workspace.Ref{})
	in(err, "through a link")
	require.Equal(t, before, dirtest.Planted(t, dep))

	// The other name of a file gets a file of its own, and an inner root is as it was granted.
	_, err = ws.WriteFile(ctx, "hard", []byte("x"), workspace.WriteOptions{MayLose: workspace.LosesLinks})
	require.NoError(t, err)
	require.Equal(t, before, dirtest.Planted(t, dep))
	_, err = ws.WriteFile(ctx, inner+"/f", []byte("x"), workspace.WriteOptions{})
	require.NoError(t, err)
	text, err := ws.ReadText(ctx, dep+"/f", workspace.TextOptions{})
	require.NoError(t, err)
	require.Contains(t, text.Content, "of dep")
}

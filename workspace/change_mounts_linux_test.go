package workspace_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/testutil/containmenttest"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestC7_NothingIsChangedOnAMountThatWasNotGranted(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	for name, policy := range policies {
		t.Run("C7/"+name, func(t *testing.T) {
			g := newGrounds(t)
			write(t, filepath.Join(g.out, "e/f"), "SECRET")
			mkdir(t, filepath.Join(g.a, "x/mounted"))
			ws := withMounts(t, policy, g.a, g.b)
			bind(t, g.out, filepath.Join(g.a, "x/mounted"))
			out := snapshot(t, g.out, nil)
			for _, path := range []string{"x/mounted/secret", "x/mounted/new", "x/mounted/e", "x/mounted/e/f", "x/mounted/../new"} {
				if policy == workspace.AnyMounts {
					continue
				}
				for name, change := range changes {
					var refused *workspace.MountError
					require.ErrorAs(t, change(ws, path), &refused, "%s %s", name, path)
				}
				require.Equal(t, out, snapshot(t, g.out, nil))
			}
			for _, path := range []string{"x/mounted", "x/mounted/", "x"} {
				require.Error(t, ws.Remove(path, nowhere), path)
				if policy == workspace.AnyMounts {
					continue
				}
				require.Error(t, ws.RemoveAll(t.Context(), path, nowhere), path)
				_, err := ws.RenameByCopy(t.Context(), path, "../B/copied", workspace.RenameOptions{})
				require.Error(t, err, path)
				require.NoDirExists(t, filepath.Join(g.b, "copied"))
				require.Equal(t, out, snapshot(t, g.out, nil))
			}
		})
	}
}

// From one mount to another within a root there is no single step.
func TestC7_AGrantedMountIsMovedFromAndTo(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	g := newGrounds(t)
	mkdir(t, filepath.Join(g.a, "node_modules"))
	mount(t, "tmpfs", filepath.Join(g.a, "node_modules"), "tmpfs", 0)
	ws := withMounts(t, workspace.ExistingMounts, g.a, g.b)
	write(t, filepath.Join(g.a, "node_modules/p/index.js"), "text")
	_, err := ws.Rename(t.Context(), "node_modules/p", "../B/p", workspace.RenameOptions{})
	require.NoError(t, err)
	requireRead(t, ws, "../B/p/index.js", "text", 1, "p/index.js")
	_, err = ws.Rename(t.Context(), "../B/p", "node_modules/q", workspace.RenameOptions{Create: workspace.CreateOnly})
	require.NoError(t, err)
	requireRead(t, ws, "node_modules/q/index.js", "text", 0, "node_modules/q/index.js")
	require.NoDirExists(t, filepath.Join(g.b, "p"))
	_, err = ws.Rename(t.Context(), "node_modules", "moved", workspace.RenameOptions{})
	require.ErrorIs(t, err, unix.EBUSY)
	require.ErrorIs(t, ws.RemoveAll(t.Context(), "node_modules", nowhere), unix.EBUSY)
	require.NoDirExists(t, filepath.Join(g.a, "node_modules/q"), "what is in a mount that was granted may go")
}

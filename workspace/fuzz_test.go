//go:build linux || darwin

package workspace_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/workspace"
)

// FuzzPaths requires that no operation reaches anything outside or panics, whatever the path or
// link target. The links of the tree lead into the roots, out of them, and in circles. The test is
// confined to its directory.
//
// Clause C9.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{
		"f", "d/e/f", "../B/f", "../out/secret", "l", "l/", "l/.", "l/secret", "across/../f", "dangling", "loop", "/", "..", ".",
		"", "\x00", "-rf", "d//e/./f", "\xff", "new\nline", "a\\..\\..", "$/A/f", "$/A/../out/secret", "$/B", "planted", "planted/x",
	} {
		for op := range operations {
			f.Add(uint8(op), path, "../out/secret")
		}
	}
	f.Add(uint8(0), "planted/../..", "$/B/d")
	f.Add(uint8(0), "planted/planted", "..")
	dir, err := os.MkdirTemp("/dev/shm", "fuzz")
	if err != nil {
		dir = f.TempDir()
	}
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	f.Fuzz(func(t *testing.T, op uint8, path, target string) {
		chosen := operations[int(op)%len(operations)]
		if !containmenttest.Confine(dir) && chosen.changes {
			t.Skip("this system cannot confine the test")
		}
		top, err := os.MkdirTemp(dir, "")
		require.NoError(t, err)
		defer os.RemoveAll(top)
		top, err = filepath.EvalSymlinks(top)
		require.NoError(t, err)
		for _, file := range []string{"A/f", "A/d/e/f", "B/f", "B/d/f"} {
			write(t, filepath.Join(top, file), file)
		}
		write(t, filepath.Join(top, "out/secret"), "SECRET")
		write(t, filepath.Join(top, "A-evil/secret"), "SECRET")
		for name, to := range map[string]string{
			"A/l": "../out", "A/across": top + "/B/d", "A/dangling": top +
				"/out/new", "A/loop": "loop", "B/back": "../A/d",
			"A/planted": strings.ReplaceAll(target, "$", top),
		} {
			_ = os.Symlink(to, filepath.Join(top, name)) // not every target is one
		}
		outside := func() map[string]string { return snapshot(t, top, []string{"A", "B"}) }
		before := outside()
		roots, err := workspace.NewRoots(filepath.Join(top, "A"), []string{filepath.Join(top, "B")})
		require.NoError(t, err)
		ws, err := workspace.Open(context.Background(), roots, workspace.Options{})
		require.NoError(t, err)
		defer ws.Close()

		text, _ := chosen.do(ws, strings.ReplaceAll(path, "$", top))
		require.NotContains(t, text, "SECRET", chosen.name)
		require.Equal(t, before, outside(), chosen.name)
		for _, root := range []string{"A", "B"} {
			require.DirExists(t, filepath.Join(top, root), chosen.name)
		}
	})
}

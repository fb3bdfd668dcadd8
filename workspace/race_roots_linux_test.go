package workspace_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

// A root, and a directory that is denied, may come to be in the place of something that goes away, between the look at
// that and the step into it.
func TestC1_WhatIsProtectedStaysWhenItIsSwappedIn(t *testing.T) {
	for name, remove := range map[string]func(ws *workspace.Workspace) error{
		"RemoveAll": func(ws *workspace.Workspace) error { return ws.RemoveAll(t.Context(), "x", nowhere) },
		"Rename by a copy": func(ws *workspace.Workspace) error {
			_, err := ws.RenameByCopy(t.Context(), "x", fresh("moved"), workspace.RenameOptions{})
			return err
		},
	} {
		for _, what := range []string{"root", "denied"} {
			t.Run(name+" with a "+what, func(t *testing.T) {
				g := newGroundsInMemory(t)
				root, denied, inner := filepath.Join(g.a, "root"), filepath.Join(g.a, "denied"), filepath.Join(g.a, "x/y")
				write(t, filepath.Join(root, "f"), "root")
				write(t, filepath.Join(denied, "f"), "denied")
				ws := openWith(t, workspace.Options{Policy: workspace.Policy{Deny: dirs(t, denied)}}, g.a, root)
				held, err := os.OpenRoot(filepath.Join(g.a, what))
				require.NoError(t, err)
				defer held.Close()
				stop := tryingToSwap(inner, filepath.Join(g.a, what))
				defer stop()
				for range 1500 {
					_ = os.MkdirAll(inner, 0o755)
					_ = remove(ws)
					text, err := held.ReadFile("f")
					require.NoError(t, err)
					require.Equal(t, what, string(text))
				}
			})
		}
	}
}

// tryingToSwap exchanges two names whenever both are there.
func tryingToSwap(one, other string) (stop func()) {
	var stopped atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stopped.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
		}
	}()
	return func() {
		stopped.Store(true)
		<-done
	}
}

package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// Of several writes that expect one version, in one workspace and in two, one succeeds.
//
// Clause E1.
func TestOneWriteReplacesAVersion(t *testing.T) {
	g := newGrounds(t)
	other := open(t, g.a)
	if !locksFiles(t, g.a) {
		other = g.ws
	}
	for i := range 100 {
		text := "version " + strconv.Itoa(i)
		write(t, filepath.Join(g.a, "f"), text)
		o := workspace.WriteOptions{IfUnchanged: workspace.VersionOf([]byte(text))}
		writers := []*workspace.Workspace{g.ws, g.ws, other, other}
		results := make(chan error, len(writers))
		for n, ws := range writers {
			go func() {
				_, err := ws.WriteFile(t.Context(), "f", []byte(strconv.Itoa(n)), o)
				results <- err
			}()
		}
		done := 0
		for range writers {
			var changed *workspace.ChangedError
			if err := <-results; err == nil {
				done++
			} else {
				require.ErrorAs(t, err, &changed)
			}
		}
		require.Equal(t, 1, done)
	}
	for path := range picture(t, g.dir) {
		require.NotContains(t, path, ".acp-agent-")
	}
}

// A file is not changed, moved or removed while somebody holds its lock, under whatever path.
//
// Clause E1.
func TestLockFile(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.a, "f"), filepath.Join(g.b, "link"))
	lock, err := g.ws.LockFile(t.Context(), "../B/link")
	require.NoError(t, err)
	ended := errors.New("the request has ended")
	short, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, ended)
	defer cancel()
	_, err = g.ws.LockFile(short, "f")
	require.ErrorIs(t, err, ended)
	_, err = g.ws.WriteFile(short, "f", nil, workspace.WriteOptions{})
	require.ErrorIs(t, err, ended)
	removed := make(chan error)
	go func() { removed <- g.ws.Remove("f", workspace.RemoveOptions{}) }()
	_, err = g.ws.WriteFile(t.Context(), "f", []byte("by the holder"),
		workspace.WriteOptions{Lock: lock})
	require.NoError(t, err)
	_, err = g.ws.WriteFile(t.Context(), "f", []byte("again"), workspace.WriteOptions{Lock: lock})
	require.NoError(t, err)
	_, err = g.ws.WriteFile(t.Context(), "d/f", nil, workspace.WriteOptions{Lock: lock})
	var moved *workspace.MovedError
	require.ErrorAs(t, err, &moved, "it is the lock of another file")
	require.Equal(t, "again", picture(t, g.dir)["A/f"])
	lock.Unlock()
	require.NoError(t, <-removed)
	require.NoFileExists(t, filepath.Join(g.a, "f"))

	lock, err = g.ws.LockFile(t.Context(), "f")
	require.NoError(t, err, "of a file that is to be made")
	_, err = g.ws.WriteFile(t.Context(), "f", []byte("made"), workspace.WriteOptions{Lock: lock})
	require.NoError(t, err)
	lock.Unlock()
	_, err = g.ws.LockFile(t.Context(), "../out/f")
	require.Error(t, err)
}

// Clause E1.
func TestRemoveOnlyAVersion(t *testing.T) {
	g := newGrounds(t)
	o := workspace.RemoveOptions{IfUnchanged: workspace.VersionOf([]byte("shown"))}
	var changed *workspace.ChangedError
	require.ErrorAs(t, g.ws.Remove("f", o), &changed)
	require.FileExists(t, filepath.Join(g.a, "f"))
	write(t, filepath.Join(g.a, "f"), "shown")
	require.NoError(t, g.ws.Remove("f", o))
}

// locksFiles reports whether another process's change of a file in dir is waited for.
func locksFiles(t *testing.T, dir string) bool {
	path := filepath.Join(dir, "lock-test")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	defer os.Remove(path)
	return workspace.LocksFiles(path)
}

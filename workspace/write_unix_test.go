//go:build linux || darwin

package workspace_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// Clause C12.
func TestWriteKeepsPermissions(t *testing.T) {
	g := newGrounds(t)
	for _, perm := range []fs.FileMode{0o600, 0o644, 0o755, 0o200, 0o666} {
		path := filepath.Join(g.a, "f")
		require.NoError(t, os.Chmod(path, perm))
		_, err := put(g.ws, "f", "x")
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, perm, info.Mode())
	}
	require.NoError(t, os.WriteFile(filepath.Join(g.a, "like"), nil, 0o666))
	like, err := os.Stat(filepath.Join(g.a, "like"))
	require.NoError(t, err)
	_, err = put(g.ws, "new", "x")
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(g.a, "new"))
	require.NoError(t, err)
	require.Equal(t, like.Mode(), info.Mode(), "a new file is as any that the process makes")
}

// Clause C12.
func TestWriteKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	g := newGrounds(t)
	path := filepath.Join(g.a, "f")
	require.NoError(t, os.Chown(path, 1234, 4321))
	require.NoError(t, os.Chmod(path, 0o640))
	_, err := put(g.ws, "f", "x")
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	stat := info.Sys().(*syscall.Stat_t)
	require.EqualValues(t, 1234, stat.Uid)
	require.EqualValues(t, 4321, stat.Gid)
	require.Equal(t, fs.FileMode(0o640), info.Mode())
}

// Clause C6.
func TestWriteInReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 && asUser(t, openToAll(t)) {
		return
	}
	g := newGrounds(t)
	require.NoError(t, os.Chmod(g.a, 0o555))
	defer os.Chmod(g.a, 0o755)
	before := picture(t, g.dir)
	for _, path := range []string{"f", "new"} {
		_, err := put(g.ws, path, "x")
		require.ErrorIs(t, err, fs.ErrPermission)
		var pathError *fs.PathError
		require.ErrorAs(t, err, &pathError)
		require.Equal(t, path, pathError.Path, "not the temporary file's")
	}
	require.Equal(t, before, picture(t, g.dir))
}

// Clause C5.
func TestReadersSeeWholeFiles(t *testing.T) {
	g := newGrounds(t)
	done := make(chan error, 1)
	go func() {
		for range 200 {
			if _, err := g.ws.WriteFile(t.Context(), "f", []byte("the whole"),
				workspace.WriteOptions{}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		text, _, err := read(g.ws, "f")
		require.NoError(t, err)
		require.Contains(t, []string{"A/f", "the whole"}, text)
		select {
		case err := <-done:
			require.NoError(t, err)
			return
		default:
		}
	}
}

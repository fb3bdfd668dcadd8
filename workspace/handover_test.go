package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// Clause C13.
func TestHandOver(t *testing.T) {
	top := realDir(t)
	a, b := mkdir(t, filepath.Join(top, "a")), mkdir(t, filepath.Join(top, "b"))
	write(t, filepath.Join(a, "dir", "file"), "")
	write(t, filepath.Join(b, "file"), "")
	link(t, "dir", filepath.Join(a, "to-dir"))
	link(t, filepath.Join("to-dir", "new"), filepath.Join(a, "to-new"))
	link(t, filepath.Join("..", "b", "file"), filepath.Join(a, "to-b"))
	link(t, a, filepath.Join(top, "spelled"))
	root := filepath.Join(top, "spelled")
	ws := open(t, root, b)

	for _, dir := range []string{root, a} {
		for _, name := range []string{"dir/file", "dir/new", "to-dir/file", "to-dir/new", "to-new",
			"to-b", "dir/../dir/file", "../b/file"} {
			require.NoError(t, ws.HandOverFile(dir+"/"+name), name)
		}
		for _, name := range []string{"", "dir", "to-dir", "to-dir/.", "dir/"} {
			require.NoError(t, ws.HandOverDir(dir+"/"+name), name)
		}
	}
	outside := (*workspace.OutsideError)(nil)
	require.ErrorAs(t, ws.HandOverFile(filepath.Join(top, "file")), &outside)
	require.ErrorAs(t, ws.HandOverDir(top), &outside)
	require.ErrorIs(t, ws.HandOverFile("dir/file"), fs.ErrInvalid,
		"other programs have another working directory")
	require.ErrorIs(t, ws.HandOverDir(filepath.Join(a, "missing")), fs.ErrNotExist)
	require.ErrorIs(t, ws.HandOverFile(filepath.Join(a, "missing", "new")), fs.ErrNotExist)
	require.NoError(t, os.Link(filepath.Join(b, "file"), filepath.Join(top, "second")))
	require.ErrorContains(t, ws.HandOverFile(filepath.Join(a, "to-b")), "other hard links")

	// The link is a path of the first root. It may be replaced by another that leads to the same
	// directory.
	require.NoError(t, os.Remove(root))
	link(t, "a", root)
	require.NoError(t, ws.HandOverFile(filepath.Join(root, "dir", "file")))
	require.NoError(t, os.Remove(root))
	link(t, "b", root)
	for _, dir := range []string{root, a} {
		for _, err := range []error{ws.HandOverFile(filepath.Join(dir, "new")),
			ws.HandOverDir(dir)} {
			require.ErrorContains(t, err, "the folder "+root+" was replaced")
		}
	}
	require.NoError(t, ws.HandOverDir(b), "the other root is still what it was")
	require.NoError(t, ws.Close())
	require.ErrorIs(t, ws.HandOverDir(b), workspace.ErrClosed)
}

// A directory that lies between a root and the file may be replaced too, and a path can leave a
// root that was replaced.
//
// Clause C13.
func TestHandOverThroughReplacedDirectories(t *testing.T) {
	top, victim := realDir(t), realDir(t)
	sub := mkdir(t, filepath.Join(top, "sub"))
	write(t, filepath.Join(top, "file"), "")
	mkdir(t, filepath.Join(top, "dir"))
	mkdir(t, filepath.Join(victim, "home"))
	write(t, filepath.Join(victim, "file"), "")
	ws := open(t, top, sub)
	require.NoError(t, ws.HandOverFile(sub+"/../file"))
	for _, dir := range []string{sub, filepath.Join(top, "dir")} {
		require.NoError(t, os.Rename(dir, dir+"-old"))
		link(t, filepath.Join(victim, "home"), dir)
	}
	require.ErrorContains(t, ws.HandOverFile(sub+"/../file"), "the folder "+sub+" was replaced")
	require.ErrorContains(t, ws.HandOverDir(sub+"/.."), "the folder "+sub+" was replaced")
	outside := (*workspace.OutsideError)(nil)
	require.ErrorAs(t, ws.HandOverFile(filepath.Join(top, "dir", "new")), &outside)
}

func TestReplacedRoot(t *testing.T) {
	top := realDir(t)
	root, other := mkdir(t, filepath.Join(top, "root")), mkdir(t, filepath.Join(top, "other"))
	write(t, filepath.Join(root, "file"), "old")
	ws := open(t, root, other)
	require.NoError(t, os.RemoveAll(root))
	_, err := ws.Open("file")
	replaced := (*workspace.ReplacedError)(nil)
	require.False(t, errors.As(err, &replaced), "nothing is there yet: %v", err)
	write(t, filepath.Join(root, "file"), "new")
	for _, path := range []string{"file", filepath.Join(root, "file"),
		filepath.Join(other, "..", "root", "sub", "new")} {
		_, err := ws.Open(path)
		require.ErrorAs(t, err, &replaced, path)
		require.EqualError(t, err,
			path+": the folder "+root+" was replaced after the session started: load the session again")
		require.ErrorIs(t, err, fs.ErrNotExist, "for those who look whether there is a file")
	}
	_, err = ws.WriteFile(t.Context(), "new", []byte("x"), workspace.WriteOptions{})
	require.ErrorAs(t, err, &replaced)
	if runtime.GOOS == "linux" { // elsewhere a directory that was removed can be empty
		dir, err := ws.OpenDir(root)
		require.NoError(t, err)
		defer dir.Close()
		_, err = dir.Entries(t.Context())
		require.ErrorAs(t, err, &replaced)
	}
	_, err = ws.Open(filepath.Join(other, "missing"))
	require.False(t, errors.As(err, &replaced), "this root is the one that was opened: %v", err)
}

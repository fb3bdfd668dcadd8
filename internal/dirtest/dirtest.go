// Package dirtest makes the directories of a test. They go with the test.
//
//	cwd := dirtest.New(t, "go.mod", "module app\n", "cmd/main.go", "package main\n")
//
// Only tests import it.
package dirtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// New makes a directory with files and returns its real path: what the system calls it once every link on the way
// is followed. files are paths with slashes and contents, in turn.
func New(t testing.TB, files ...string) string {
	t.Helper()
	require.Zero(t, len(files)%2, "a file has a path and a content: %q", files)
	tree := Tree{}
	for i := 0; i < len(files); i += 2 {
		tree[files[i]] = files[i+1]
	}
	return tree.Plant(t)
}

// Short makes a directory whose path leaves room for the name of a socket, for which systems give a hundred
// bytes in all: that of t.TempDir has the name of the test in it.
func Short(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "t")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// Package dirtest makes the directories of a test. They go with the test.
//
//	cwd := dirtest.New(t, "go.mod", "module app\n", "cmd/main.go", "package main\n")
//
// Only tests import it.
package dirtest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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

// Strange makes directories whose names try those who write them into URIs, in an order that is not that of the names, and
// returns them with the directory that they are in.
func Strange(t testing.TB) (top string, dirs []string) {
	t.Helper()
	names := []string{"z last first", "a", "with space", "per%cent", "per%20cent", "hash#", "question?", "ü", "日本語", "[x]", "+&=;'"}
	if runtime.GOOS == "windows" {
		names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "?") })
	} else {
		names = append(names, "line\nbreak", `back\slash`, `"quoted"`)
	}
	top = New(t)
	for _, name := range names {
		dirs = append(dirs, filepath.Join(top, name))
		require.NoError(t, os.Mkdir(dirs[len(dirs)-1], 0o755))
	}
	return top, dirs
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

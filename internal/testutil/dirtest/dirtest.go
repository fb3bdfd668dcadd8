// Package dirtest makes the directories of a test. They go with the test.
//
//	cwd := dirtest.New(t, "go.mod", "module app\n", "cmd/main.go", "package main\n")
//
// Only tests import it.
package dirtest

import (
	"io/fs"
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

// Tree is the files of a directory: their contents by their paths, with slashes.
type Tree map[string]string

// Plant makes a directory with the files, which goes with the test, and returns its real path.
func (tree Tree) Plant(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	tree.PlantIn(t, dir)
	return dir
}

// PlantIn writes the files into a directory that is there.
func (tree Tree) PlantIn(t require.TestingT, dir string) {
	for path, text := range tree {
		path = filepath.Join(dir, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// Planted are the regular files below a directory. Links are not followed, nor is anything else read.
func Planted(t testing.TB, dir string) Tree {
	t.Helper()
	tree := Tree{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		tree[filepath.ToSlash(rel)] = string(text)
		return err
	}))
	return tree
}

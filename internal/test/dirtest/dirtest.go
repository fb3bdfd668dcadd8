// Package dirtest creates directories for tests. They are removed when the test ends.
//
//	cwd := dirtest.New(t, "go.mod", "module app\n", "app/main.go", "package main\n")
//
// It must only be imported by tests.
package dirtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// New creates a directory with files and returns its path with all links resolved. files alternates
// slash-separated paths and contents.
func New(t testing.TB, files ...string) string {
	t.Helper()
	require.Zero(t, len(files)%2, "files must alternate paths and contents: %q", files)
	tree := Tree{}
	for i := 0; i < len(files); i += 2 {
		tree[files[i]] = files[i+1]
	}
	return tree.Plant(t)
}

// Read returns what a file contains.
func Read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// Strange creates directories whose names need escaping in URIs, not in alphabetical order, and
// returns them with their parent.
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

// Short creates a directory with a short path, for sockets, whose paths are limited to about a
// hundred bytes. The path of t.TempDir contains the name of the test.
func Short(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "t")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// InMemory makes t.TempDir create directories in memory, where the system has room for them: many
// small files take a third of the time there. It is for a TestMain whose tests do not need a disk,
// which passes the option to goleak:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(m, dirtest.InMemory()) }
func InMemory() goleak.Option {
	memory := Memory()
	if memory == "" || strings.HasPrefix(os.TempDir(), memory) {
		return goleak.Cleanup(os.Exit)
	}
	dir, err := os.MkdirTemp(memory, "acp-agent-test")
	if err != nil {
		return goleak.Cleanup(os.Exit)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Setenv("TMPDIR", dir)); err != nil {
		panic(err)
	}
	return goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	})
}

// Memory returns the directory of a file system in memory that has room, "" if there is none.
func Memory() string {
	const memory = "/dev/shm"
	if free(memory) < 1<<30 {
		return ""
	}
	return memory
}

// Tree maps slash-separated paths of files to their contents.
type Tree map[string]string

// Plant creates a directory with the files and returns its path with all links resolved.
func (tree Tree) Plant(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	tree.PlantIn(t, dir)
	return dir
}

// PlantIn writes the files into an existing directory.
func (tree Tree) PlantIn(t require.TestingT, dir string) {
	for path, text := range tree {
		path = filepath.Join(dir, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// Planted returns the regular files below a directory. Links are not followed.
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

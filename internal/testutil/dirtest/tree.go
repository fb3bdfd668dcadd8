package dirtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

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

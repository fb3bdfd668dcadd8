package dirtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNew(t *testing.T) {
	dir := dirtest.New(t, "a", "one", "b/c/d", "")
	real, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	require.Equal(t, real, dir)
	text, err := os.ReadFile(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "one", string(text))
	require.FileExists(t, filepath.Join(dir, "b", "c", "d"))
	require.NotEqual(t, dir, dirtest.New(t))
}

func TestPlanted(t *testing.T) {
	tree := dirtest.Tree{"a": "one", "b/c/d": ""}
	dir := tree.Plant(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	require.Equal(t, tree, dirtest.Planted(t, dir))
	dirtest.Tree{"a": "two"}.PlantIn(t, dir)
	require.Equal(t, "two", dirtest.Planted(t, dir)["a"])
}

func TestStrange(t *testing.T) {
	top, dirs := dirtest.Strange(t)
	entries, err := os.ReadDir(top)
	require.NoError(t, err)
	require.Len(t, entries, len(dirs))
	require.False(t, slices.IsSorted(dirs))
}

func TestShort(t *testing.T) {
	var dir string
	t.Run(strings.Repeat("long", 20), func(t *testing.T) {
		dir = dirtest.Short(t)
		require.Less(t, len(dir), len(os.TempDir())+15)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	})
	require.NoDirExists(t, dir)
}

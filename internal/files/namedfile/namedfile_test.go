package namedfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	content, err := namedfile.ReadBounded(file, 4)
	require.NoError(t, err)
	require.Equal(t, "text", string(content))
	_, err = namedfile.ReadBounded(file, 3)
	require.ErrorContains(t, err, "has more than 3 bytes")
	_, err = namedfile.Read(os.DevNull)
	require.ErrorIs(t, err, namedfile.ErrNotRegular)
}

func TestExplain(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "none"):      "there is no file " + filepath.Join(dir, "none") + ": check its path",
		filepath.Join(dir, "no", "one"): "there is no file " + filepath.Join(dir, "no", "one") + ": check its path",
		dir:                             dir + " is a folder: give a file",
	} {
		_, err := namedfile.Read(path)
		require.EqualError(t, namedfile.Explain(err), want)
	}
	require.EqualError(t, namedfile.Explain(&fs.PathError{Path: "a", Err: fs.ErrPermission}),
		"you have no permission to open a: give another file, or change its permissions")
	_, err := os.Create(filepath.Join(dir, "no", "one"))
	require.EqualError(t, namedfile.ExplainNew(err), "there is no folder "+filepath.Join(dir, "no")+" for the file one: create it, or give another file")
}

func TestSame(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	require.True(t, namedfile.Same(dir, link))
	require.False(t, namedfile.Same(dir, t.TempDir()))
	require.False(t, namedfile.Same(dir, filepath.Join(dir, "none")))
}

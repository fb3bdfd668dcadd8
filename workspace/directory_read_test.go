package workspace_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// openTop opens the directory of the first root.
func openTop(t *testing.T, ws *workspace.Workspace) *workspace.Directory {
	d, err := ws.OpenDir(".")
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestA23_ReadFileFollowsLinksAsOpenDoes(t *testing.T) {
	top := realDir(t)
	a, b := filepath.Join(top, "a"), filepath.Join(top, "b")
	write(t, filepath.Join(a, "f"), "of a")
	write(t, filepath.Join(b, "f"), "of b")
	write(t, filepath.Join(top, "secret"), "secret")
	link(t, "../b/f", filepath.Join(a, "linked"))
	link(t, "../secret", filepath.Join(a, "out"))
	link(t, "nowhere", filepath.Join(a, "gone"))
	d := openTop(t, open(t, a, b))
	for _, kind := range []os.FileMode{0, os.ModeSymlink} { // whatever it was listed as
		text, info, err := d.ReadFile(workspace.Entry{Name: "linked", Type: kind}, nil, 100)
		require.NoError(t, err)
		require.Equal(t, "of b", string(text))
		require.Equal(t, filepath.Join(b, "f"), info.Ref().Real())
		var outside *workspace.OutsideError
		_, _, err = d.ReadFile(workspace.Entry{Name: "out", Type: kind}, nil, 100)
		require.ErrorAs(t, err, &outside)
		_, _, err = d.ReadFile(workspace.Entry{Name: "gone", Type: kind}, nil, 100)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	for _, name := range []string{"", ".", "..", "../secret", "/", "a/f", "f\x00"} {
		_, _, err := d.ReadFile(workspace.Entry{Name: name}, nil, 100)
		require.Error(t, err, name)
		_, err = d.Lstat(name)
		if name != "." {
			require.Error(t, err, name)
		}
	}
}

func TestA23_ReadFileReadsIntoABuffer(t *testing.T) {
	top := realDir(t)
	write(t, filepath.Join(top, "small"), "small")
	write(t, filepath.Join(top, "large"), strings.Repeat("l", 10_000))
	write(t, filepath.Join(top, "empty"), "")
	d := openTop(t, open(t, top))
	buf := make([]byte, 0, 100)
	text, info, err := d.ReadFile(workspace.Entry{Name: "small"}, buf, 5)
	require.NoError(t, err)
	require.Equal(t, "small", string(text))
	require.Equal(t, "small", string(buf[:5]), "the buffer is used")
	require.EqualValues(t, 5, info.Size())
	text, info, err = d.ReadFile(workspace.Entry{Name: "small"}, buf, 4)
	require.NoError(t, err)
	require.Nil(t, text, "it is too large")
	require.EqualValues(t, 5, info.Size())
	text, _, err = d.ReadFile(workspace.Entry{Name: "large"}, buf, 1<<20)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("l", 10_000), string(text))
	text, _, err = d.ReadFile(workspace.Entry{Name: "empty"}, nil, 100)
	require.NoError(t, err)
	require.Empty(t, text)
}

func TestC6_ReadFileReadsRegularFilesOnly(t *testing.T) {
	top := realDir(t)
	write(t, filepath.Join(top, "dir/f"), "")
	d := openTop(t, open(t, top))
	for _, kind := range []os.FileMode{0, os.ModeDir} {
		_, _, err := d.ReadFile(workspace.Entry{Name: "dir", Type: kind}, nil, 100)
		require.ErrorIs(t, err, syscall.EISDIR)
	}
}

func TestA23_StatDescribesTheOpenDirectory(t *testing.T) {
	top := realDir(t)
	write(t, filepath.Join(top, "d/f"), "")
	ws := open(t, top)
	d, err := openTop(t, ws).OpenDir("d")
	require.NoError(t, err)
	defer d.Close()
	byPath, err := ws.OpenDir("d")
	require.NoError(t, err)
	defer byPath.Close()
	there, err := os.Stat(filepath.Join(top, "d"))
	require.NoError(t, err)
	for _, dir := range []*workspace.Directory{d, byPath} {
		info, err := dir.Stat()
		require.NoError(t, err)
		require.True(t, info.IsDir())
		require.Equal(t, "d", info.Name())
		require.Equal(t, filepath.Join(top, "d"), info.Ref().Real())
		require.Equal(t, there.Mode(), info.Mode())
		if runtime.GOOS != "windows" {
			later := time.Now().Add(time.Hour)
			require.True(t, workspace.LookOf(there, later).Still(workspace.LookOf(info.FileInfo, later)))
		}
	}
}

package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

var readWrite = workspace.FsOptions{Access: workspace.ReadWrite}

func TestFs_WritesWhereItMay(t *testing.T) {
	g := newGrounds(t)
	fsys := g.ws.FsWith(readWrite)
	require.NoError(t, afero.WriteFile(fsys, "new", []byte("one"), 0o640))
	require.NoError(t, afero.WriteFile(fsys, "new", []byte("two"), 0o600))
	info, err := fsys.Stat("new")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode())
	ok, err := afero.FileContainsBytes(fsys, "new", []byte("two"))
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, afero.WriteReader(fsys, "p/q/r", strings.NewReader("reader")))
	require.Error(t, afero.SafeWriteReader(fsys, "p/q/r", strings.NewReader("again")))
	f, err := afero.TempFile(fsys, "d", "temp*")
	require.NoError(t, err)
	_, err = f.WriteString("0123")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 1)
	require.NoError(t, err)
	_, err = f.Readdir(0)
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	text, err := afero.ReadFile(fsys, f.Name())
	require.NoError(t, err)
	require.Equal(t, "0x23", string(text))
	require.NoError(t, fsys.Remove(f.Name()))
	dir, err := afero.TempDir(fsys, "../B", "temp")
	require.NoError(t, err)
	require.NoError(t, fsys.Mkdir(filepath.Join(dir, "in"), 0o755))
	require.NoError(t, fsys.Rename("new", filepath.Join(dir, "in/new")))
	require.NoError(t, fsys.RemoveAll(dir))
	require.NoError(t, fsys.MkdirAll("x/y", 0o755))
	require.NoError(t, fsys.Chmod("f", 0o600))
	then := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, path := range []string{"f", "d", "."} {
		require.NoError(t, fsys.Chtimes(path, time.Time{}, then))
		info, err = fsys.Stat(path)
		require.NoError(t, err)
		require.True(t, info.ModTime().Equal(then))
	}
	require.ErrorIs(t, fsys.Chown("f", 0, 0), errors.ErrUnsupported)
	require.Error(t, fsys.Chmod("f", fs.ModeSetuid|0o755))
	copyOf, err := fsys.Open("f")
	require.NoError(t, err)
	defer copyOf.Close()
	_, err = copyOf.Write(nil)
	require.ErrorIs(t, err, syscall.EBADF)
	var outside *workspace.OutsideError
	require.ErrorAs(t, afero.WriteFile(fsys, "../out/new", nil, 0o644), &outside)
	require.ErrorAs(t, fsys.Rename("f", "../out/new"), &outside)
	require.Equal(t, map[string]string{
		".": "d---------", "A": "d---------", "A/d": "d---------", "A/d/e": "d---------", "A/d/e/f": "A/d/e/f", "A/f": "A/f",
		"A/p": "d---------", "A/p/q": "d---------", "A/p/q/r": "reader", "A/x": "d---------", "A/x/y": "d---------",
		"B": "d---------", "B/d": "d---------", "B/d/f": "B/d/f", "B/f": "B/f", "out": "d---------", "out/secret": "SECRET",
	}, picture(t, g.dir))
}

// Layers of afero's own go on top.
func TestFs_BelowOthers(t *testing.T) {
	g := newGrounds(t)
	fsys := g.ws.FsWith(readWrite)
	based := afero.NewBasePathFs(fsys, g.b)
	require.NoError(t, afero.WriteFile(based, "/new", []byte("x"), 0o644))
	requireRead(t, g.ws, g.b+"/new", "x", 1, "new")
	layered := afero.NewCopyOnWriteFs(g.ws.Fs(), afero.NewMemMapFs())
	require.NoError(t, afero.WriteFile(layered, "d/e/f", []byte("in memory"), 0o644))
	requireRead(t, g.ws, "d/e/f", "A/d/e/f", 0, "d/e/f")
	found, err := afero.Glob(fsys, g.a+"/d/*/f")
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(g.a, "d/e/f")}, found)
	require.NoError(t, fstest.TestFS(afero.NewIOFS(g.ws.Fs()), "f", "d/e/f"))
}

func TestFs_OpensByFlags(t *testing.T) {
	g := newGrounds(t)
	fsys := g.ws.FsWith(readWrite)
	f, err := fsys.OpenFile("new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = fsys.OpenFile("new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = fsys.OpenFile("d", os.O_RDWR, 0)
	require.ErrorIs(t, err, syscall.EISDIR)
	d, err := fsys.OpenFile("d", os.O_RDONLY, 0)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.Truncate(0), syscall.EBADF)
}

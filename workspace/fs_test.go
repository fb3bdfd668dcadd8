package workspace_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestFsReads(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "across"))
	link(t, g.out, filepath.Join(g.a, "to-out"))
	fsys := g.ws.Fs()
	text, err := afero.ReadFile(fsys, "across/f")
	require.NoError(t, err)
	require.Equal(t, "B/d/f", string(text))

	infos, err := afero.ReadDir(fsys, g.a)
	require.NoError(t, err)
	var names []string
	for _, info := range infos {
		names = append(names, info.Name())
	}
	require.Equal(t, []string{"across", "d", "f", "to-out"}, names)
	require.Equal(t, fs.ModeSymlink, infos[0].Mode().Type())

	info, err := fsys.Stat(g.a)
	require.NoError(t, err)
	require.Equal(t, "A", info.Name())
	ok, err := afero.Exists(fsys, "missing")
	require.NoError(t, err)
	require.False(t, ok)
	var outside *workspace.OutsideError
	_, err = afero.ReadFile(fsys, "to-out/secret")
	require.ErrorAs(t, err, &outside)
	_, err = afero.ReadDir(fsys, g.out)
	require.ErrorAs(t, err, &outside)

	target, err := fsys.(afero.LinkReader).ReadlinkIfPossible("across")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(g.b, "d"), target)
	_, err = fsys.(afero.LinkReader).ReadlinkIfPossible("f")
	require.Error(t, err)
}

func TestFsWalk(t *testing.T) {
	g := newGrounds(t)
	link(t, "..", filepath.Join(g.a, "d/up"))
	link(t, g.out, filepath.Join(g.a, "out"))
	var paths []string
	require.NoError(t, afero.Walk(g.ws.Fs(), "", func(path string, _ fs.FileInfo, err error) error {
		return nil
	}))
	require.NoError(t, afero.Walk(g.ws.Fs(), g.a,
		func(path string, _ fs.FileInfo, err error) error {
			rel, _ := filepath.Rel(g.a, path)
			paths = append(paths, rel)
			return err
		}))
	require.Equal(t, []string{".", "d", "d/e", "d/e/f", "d/up", "f", "out"}, paths)
}

func TestFsReaddir(t *testing.T) {
	g := newGrounds(t)
	d, err := g.ws.Fs().Open("")
	require.Error(t, err)
	require.Nil(t, d)
	d, err = g.ws.Fs().Open(".")
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, ".", d.Name())
	one, err := d.Readdirnames(1)
	require.NoError(t, err)
	require.Equal(t, []string{"d"}, one)
	rest, err := d.Readdir(5)
	require.NoError(t, err)
	require.Len(t, rest, 1)
	_, err = d.Readdir(1)
	require.ErrorIs(t, err, io.EOF)
	none, err := d.Readdir(0)
	require.NoError(t, err)
	require.Empty(t, none)
	info, err := d.Stat()
	require.NoError(t, err)
	require.True(t, info.IsDir())
	require.Equal(t, "A", info.Name())
	_, err = d.Read(nil)
	require.ErrorIs(t, err, syscall.EISDIR)
}

func TestFsWrites(t *testing.T) {
	g := newGrounds(t)
	fsys := g.ws.Fs()
	require.NoError(t, afero.WriteFile(fsys, "new", []byte("one"), 0o640))
	require.NoError(t, afero.WriteFile(fsys, "new", []byte("two"), 0o600))
	requireRead(t, g.ws, "new", "two", 0, "new")
	require.NoError(t, afero.WriteReader(fsys, "../B/d/r", strings.NewReader("reader")))
	require.Error(t, afero.SafeWriteReader(fsys, "../B/d/r", strings.NewReader("again")))
	requireRead(t, g.ws, "../B/d/r", "reader", 1, "d/r")

	f, err := fsys.Create("f")
	require.NoError(t, err)
	_, err = f.WriteString("half")
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	requireRead(t, g.ws, "f", "A/f", 0, "f")
	info, err := f.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 3, info.Size())
	require.NoError(t, f.Close())
	requireRead(t, g.ws, "f", "half", 0, "f")
	require.ErrorIs(t, f.Close(), fs.ErrClosed)
	_, err = f.Write(nil)
	require.ErrorIs(t, err, fs.ErrClosed)

	_, err = fsys.OpenFile("missing", os.O_WRONLY|os.O_TRUNC, 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fsys.OpenFile("f", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0)
	require.ErrorIs(t, err, fs.ErrExist)
	var outside *workspace.OutsideError
	require.ErrorAs(t, afero.WriteFile(fsys, "../out/new", nil, 0o644), &outside)
}

func TestFsUnsupported(t *testing.T) {
	g := newGrounds(t)
	fsys := g.ws.Fs()
	f, err := fsys.OpenFile("f", os.O_RDONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	d, err := fsys.Open("d")
	require.NoError(t, err)
	defer d.Close()
	w, err := fsys.Create("w")
	require.NoError(t, err)
	now := time.Now()
	for name, err := range map[string]error{
		"in place":   second(fsys.OpenFile("f", os.O_WRONLY, 0)),
		"both":       second(fsys.OpenFile("f", os.O_RDWR, 0)),
		"create":     second(fsys.OpenFile("new", os.O_CREATE, 0o644)),
		"append":     second(fsys.OpenFile("f", os.O_APPEND|os.O_WRONLY, 0)),
		"truncate":   second(fsys.OpenFile("f", os.O_TRUNC, 0)),
		"Mkdir":      fsys.Mkdir("new", 0o755),
		"MkdirAll":   fsys.MkdirAll("new/er", 0o755),
		"Remove":     fsys.Remove("f"),
		"RemoveAll":  fsys.RemoveAll("d"),
		"Rename":     fsys.Rename("f", "g"),
		"Chmod":      fsys.Chmod("f", 0),
		"Chown":      fsys.Chown("f", 0, 0),
		"Chtimes":    fsys.Chtimes("f", now, now),
		"f.Write":    second(f.Write([]byte("x"))),
		"f.WriteAt":  second(f.WriteAt([]byte("x"), 0)),
		"f.String":   second(f.WriteString("x")),
		"f.Truncate": f.Truncate(0),
		"d.Write":    second(d.Write([]byte("x"))),
		"d.Truncate": d.Truncate(0),
		"w.Read":     second(w.Read(nil)),
		"w.WriteAt":  second(w.WriteAt([]byte("x"), 0)),
		"w.Seek":     second(w.Seek(0, 0)),
		"w.Truncate": w.Truncate(0),
	} {
		require.ErrorIs(t, err, fs.ErrPermission, name)
		var pathError *fs.PathError
		require.ErrorAs(t, err, &pathError, name)
	}
	requireRead(t, g.ws, "f", "A/f", 0, "f")
}

func second[T any](_ T, err error) error { return err }

func TestHash(t *testing.T) {
	dir := realDir(t)
	path := filepath.Join(dir, "file")
	write(t, path, "text")
	w := open(t, dir)
	want := sha256.Sum256([]byte("text"))

	sum, size, err := w.Hash(path, 4)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(want[:]), sum)
	require.EqualValues(t, 4, size)

	sum, size, err = w.Hash(path, 3)
	require.NoError(t, err)
	require.Empty(t, sum)
	require.EqualValues(t, 4, size)

	_, _, err = w.Hash(dir, 4)
	require.Error(t, err)
}

package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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

// Clause A23.
func TestReadFileFollowsLinks(t *testing.T) {
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
	for _, name := range []string{"", ".", "..", "../secret", "/", "/etc", "a/f", "e/", "./e", "f\x00"} {
		_, _, err := d.ReadFile(workspace.Entry{Name: name}, nil, 100)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
		_, err = d.OpenDir(name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
		_, err = d.Lstat(name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
	}
}

// Clause A23.
func TestReadFileBuffer(t *testing.T) {
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

// Clause C6.
func TestReadFileOfDirectories(t *testing.T) {
	top := realDir(t)
	write(t, filepath.Join(top, "dir/f"), "")
	d := openTop(t, open(t, top))
	for _, kind := range []os.FileMode{0, os.ModeDir} {
		_, _, err := d.ReadFile(workspace.Entry{Name: "dir", Type: kind}, nil, 100)
		require.ErrorIs(t, err, syscall.EISDIR)
	}
}

// Clause A23.
func TestDirectoryStat(t *testing.T) {
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
		require.True(t, there.ModTime().Equal(info.ModTime()))
	}
}

func newTree(t *testing.T) (dir string, ws *workspace.Workspace) {
	dir = realDir(t)
	for _, path := range []string{"b/2", "b/1", "a/x/y", "c", "a/z"} {
		write(t, filepath.Join(dir, path), path)
	}
	link(t, "a", filepath.Join(dir, "to-dir"))
	link(t, "c", filepath.Join(dir, "to-file"))
	return dir, open(t, dir)
}

// Clause C5.
func TestWalkAfterReplacement(t *testing.T) {
	dir, ws := newTree(t)
	out := realDir(t)
	write(t, filepath.Join(out, "secret"), "SECRET")
	var failed error
	require.NoError(t, walk(t.Context(), ws, ".", func(v visit) error {
		require.NotEqual(t, "secret", v.Name)
		if v.Name == "b" && v.Err == nil {
			require.NoError(t, os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "moved")))
			link(t, out, filepath.Join(dir, "b"))
		}
		failed = errors.Join(failed, v.Err)
		return nil
	}))
	require.Error(t, failed, "it is reported")
}

// Clause C10.
func TestDirectoriesFollowLinks(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "d/to-b"))
	link(t, "../f", filepath.Join(g.a, "d/to-f"))
	link(t, g.out, filepath.Join(g.a, "d/to-out"))
	d, err := g.ws.OpenDir("d")
	require.NoError(t, err)
	defer d.Close()

	entries, err := d.Entries(t.Context())
	require.NoError(t, err)
	require.Equal(t, []workspace.Entry{
		{Name: "e", Type: fs.ModeDir}, {Name: "to-b", Type: fs.ModeSymlink},
		{Name: "to-f", Type: fs.ModeSymlink}, {Name: "to-out", Type: fs.ModeSymlink},
	}, entries)

	b, err := d.OpenDir("to-b")
	require.NoError(t, err)
	defer b.Close()
	require.Equal(t, 1, b.Ref().Root().Index)
	require.Equal(t, "d", b.Ref().Rel())
	f, err := d.Open("to-f")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "f", f.Ref().Rel())
	var outside *workspace.OutsideError
	_, err = d.Open("to-out")
	require.ErrorAs(t, err, &outside)
	_, err = d.OpenDir("to-out")
	require.ErrorAs(t, err, &outside)
	info, err := d.Lstat("to-out")
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, info.Mode().Type())
	require.Equal(t, "d/to-out", info.Ref().Rel())
}

// A walk enters a nested root by the handle that was opened, not what has replaced its directory.
//
// Clause C8.
func TestWalkOfNestedRoots(t *testing.T) {
	outer := realDir(t)
	inner := filepath.Join(outer, "d/inner")
	write(t, filepath.Join(inner, "f"), "granted")
	ws := open(t, outer, inner)
	require.NoError(t, os.Rename(inner, filepath.Join(outer, "moved")))
	write(t, filepath.Join(inner, "f"), "SECRET")
	d, err := ws.OpenDir("d")
	require.NoError(t, err)
	defer d.Close()
	child, err := d.OpenDir("inner")
	require.NoError(t, err)
	defer child.Close()
	f, err := child.Open("f")
	require.NoError(t, err)
	defer f.Close()
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "granted", string(text))

	look := map[string]string{}
	require.NoError(t, walk(t.Context(), ws, "d", func(v visit) error {
		if v.Type.IsRegular() {
			f, err := v.Open()
			require.NoError(t, err)
			defer f.Close()
			text, err := io.ReadAll(f)
			require.NoError(t, err)
			look[v.Ref().Path()] = string(text)
		}
		return nil
	}))
	require.Equal(t, map[string]string{filepath.Join(inner, "f"): "granted"}, look)
}

func TestMaxEntries(t *testing.T) {
	dir := realDir(t)
	for i := range 12 {
		write(t, filepath.Join(dir, "d", fmt.Sprintf("%02d", i)), "")
	}
	write(t, filepath.Join(dir, "e/f"), "")
	for bound, full := range map[int]bool{11: false, 12: true, 13: true, 0: true} {
		ws := openWith(t, workspace.Options{MaxEntries: bound}, dir)
		d, err := ws.OpenDir("d")
		require.NoError(t, err)
		defer d.Close()
		for range 2 { // a directory can be listed again
			entries, err := d.Entries(t.Context())
			if full {
				require.NoError(t, err)
				require.Len(t, entries, 12)
				continue
			}
			var cut *workspace.LimitError
			require.ErrorAs(t, err, &cut)
			require.EqualValues(t, bound, cut.Limit)
			require.Equal(t, filepath.Join(dir, "d"), cut.Path)
			require.Len(t, entries, bound, "what was read comes with it")
			require.True(t, isSorted(entries))
		}
		var walked []string
		err = walk(t.Context(), ws, ".", func(v visit) error {
			if v.Err == nil {
				walked = append(walked, v.Ref().Rel())
			}
			return nil
		})
		require.NoError(t, err)
		require.Contains(t, walked, "e/f", "the walk goes on elsewhere")
	}
}

func isSorted(entries []workspace.Entry) bool {
	for i := range len(entries) - 1 {
		if entries[i].Name >= entries[i+1].Name {
			return false
		}
	}
	return true
}

func TestEntriesCancelled(t *testing.T) {
	g := newGrounds(t)
	d, err := g.ws.OpenDir(".")
	require.NoError(t, err)
	defer d.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err = d.Entries(ctx)
	require.ErrorIs(t, err, enough)
}

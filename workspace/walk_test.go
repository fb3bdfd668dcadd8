package workspace_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func newTree(t *testing.T) (dir string, ws *workspace.Workspace) {
	dir = realDir(t)
	for _, path := range []string{"b/2", "b/1", "a/x/y", "c", "a/z"} {
		write(t, filepath.Join(dir, path), path)
	}
	link(t, "a", filepath.Join(dir, "to-dir"))
	link(t, "c", filepath.Join(dir, "to-file"))
	return dir, open(t, dir)
}

func TestWalk_DepthFirstSortedAndNotThroughLinks(t *testing.T) {
	_, ws := newTree(t)
	var rels []string
	require.NoError(t, ws.Walk(t.Context(), ".", func(v workspace.Visit) error {
		rels = append(rels, v.Ref().Rel())
		return v.Err
	}))
	require.Equal(t, []string{
		".", "a", "a/x", "a/x/y", "a/z", "b", "b/1", "b/2", "c", "to-dir", "to-file",
	}, rels)
}

func TestWalk_StartsWhereALinkLeads(t *testing.T) {
	dir, ws := newTree(t)
	for _, start := range []string{"to-dir", dir + "/to-dir/", "to-dir/x/.."} {
		var rels []string
		require.NoError(t, ws.Walk(t.Context(), start, func(v workspace.Visit) error {
			rels = append(rels, v.Ref().Rel())
			return v.Err
		}))
		require.Equal(t, []string{"a", "a/x", "a/x/y", "a/z"}, rels)
	}
}

func TestWalk_OpensWhatItVisits(t *testing.T) {
	_, ws := newTree(t)
	texts := map[string]string{}
	require.NoError(t, ws.Walk(t.Context(), ".", func(v workspace.Visit) error {
		f, err := v.Open()
		if err != nil {
			require.True(t, v.Type.IsDir() || v.Name == "to-dir", "%v", err)
			return nil
		}
		defer f.Close()
		text := make([]byte, 10)
		n, _ := f.Read(text)
		texts[v.Name] = string(text[:n])
		return nil
	}))
	require.Equal(t, map[string]string{"y": "a/x/y", "z": "a/z", "1": "b/1", "2": "b/2", "c": "c", "to-file": "c"}, texts)
}

func TestWalk_SkipsAndStops(t *testing.T) {
	_, ws := newTree(t)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		at   string
		with error
		want []string
		err  error
	}{
		"a directory":          {"a", fs.SkipDir, []string{".", "a", "b", "b/1", "b/2", "c", "to-dir", "to-file"}, nil},
		"the rest of one":      {"b/1", fs.SkipDir, []string{".", "a", "a/x", "a/x/y", "a/z", "b", "b/1", "c", "to-dir", "to-file"}, nil},
		"everything":           {".", fs.SkipDir, []string{"."}, nil},
		"all that follows":     {"a/x", fs.SkipAll, []string{".", "a", "a/x"}, nil},
		"by failing":           {"a/z", broken, []string{".", "a", "a/x", "a/x/y", "a/z"}, broken},
		"the rest of the root": {"c", fs.SkipDir, []string{".", "a", "a/x", "a/x/y", "a/z", "b", "b/1", "b/2", "c"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var rels []string
			err := ws.Walk(t.Context(), ".", func(v workspace.Visit) error {
				rels = append(rels, v.Ref().Rel())
				if v.Ref().Rel() == c.at {
					return c.with
				}
				return v.Err
			})
			require.Equal(t, c.err, err)
			require.Equal(t, c.want, rels)
		})
	}
}

func TestWalk_StopsWhenItsContextEnds(t *testing.T) {
	_, ws := newTree(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	var last string
	err := ws.Walk(ctx, ".", func(v workspace.Visit) error {
		last = v.Ref().Rel()
		if last == "a/x" {
			cancel(enough)
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, "a/x", last)
}

func TestWalk_GoesByHandles(t *testing.T) {
	dir, ws := newTree(t)
	out := realDir(t)
	write(t, filepath.Join(out, "x/secret"), "SECRET")
	var rels []string
	require.NoError(t, ws.Walk(t.Context(), ".", func(v workspace.Visit) error {
		rels = append(rels, v.Ref().Rel())
		if v.Name == "x" { // a, which holds x, is open; what takes its place is not walked
			require.NoError(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "gone")))
			link(t, out, filepath.Join(dir, "a"))
		}
		return v.Err
	}))
	require.Contains(t, rels, "a/x/y")
	require.NotContains(t, rels, "a/x/secret")
}

func TestC5_ADirectoryReplacedByALinkIsNotWalkedInto(t *testing.T) {
	dir, ws := newTree(t)
	out := realDir(t)
	write(t, filepath.Join(out, "secret"), "SECRET")
	var failed error
	require.NoError(t, ws.Walk(t.Context(), ".", func(v workspace.Visit) error {
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

func TestDirectory_NamesAreOneComponent(t *testing.T) {
	g := newGrounds(t)
	d, err := g.ws.OpenDir("d")
	require.NoError(t, err)
	defer d.Close()
	for _, name := range []string{"", ".", "..", "/", "e/f", "e/", "../f", "/etc", "./e", "a\x00"} {
		_, err := d.Open(name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
		_, err = d.OpenDir(name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
		_, err = d.Lstat(name)
		require.ErrorIs(t, err, fs.ErrInvalid, name)
	}
	_, err = d.Open("e")
	require.ErrorIs(t, err, syscall.EISDIR)
	_, err = d.Open("missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestC10_DirectoriesFollowLinksAsPathsDo(t *testing.T) {
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

// A walk comes into a root that lies in another as any path does: by the handle that was granted, not to what stands in
// its place by now.
func TestC8_AWalkEntersANestedRootByItsHandle(t *testing.T) {
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
	require.NoError(t, ws.Walk(t.Context(), "d", func(v workspace.Visit) error {
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

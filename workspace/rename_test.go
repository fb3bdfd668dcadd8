package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// renames are the two ways that a thing is moved: in one step, and by a copy, as between file systems.
var renames = map[string]func(*workspace.Workspace, context.Context, string, string, workspace.RenameOptions) (workspace.Ref, error){
	"in one step": (*workspace.Workspace).Rename,
	"by a copy":   (*workspace.Workspace).RenameByCopy,
}

func TestRename(t *testing.T) {
	for name, rename := range renames {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "across"))
			link(t, "../x", filepath.Join(g.a, "d/l"))
			mkdir(t, filepath.Join(g.b, "empty"))
			for _, c := range []struct{ from, to, want string }{
				{"f", "g", "A/g"},
				{"g", "../B/g", "B/g"},
				{"../B/g", "across/g", "B/d/g"},
				{"across/g", g.b + "/f", "B/f"}, // replaced
				{"across", "link", "A/link"},
				{"d/", "../B/tree/", "B/tree"},
				{"../B/tree", "../B/empty", "B/empty"}, // replaced
				{"link", "../B/f", "B/f"},              // a file by a link
			} {
				ref, err := rename(g.ws, t.Context(), c.from, c.to, workspace.RenameOptions{})
				require.NoError(t, err, "%s to %s", c.from, c.to)
				require.Equal(t, filepath.Join(g.dir, c.want), ref.Path())
			}
			require.Equal(t, map[string]string{
				".": "d---------", "A": "d---------", "B": "d---------", "B/d": "d---------", "B/d/f": "B/d/f", "B/f": "-> " + g.b + "/d",
				"B/empty": "d---------", "B/empty/e": "d---------", "B/empty/e/f": "A/d/e/f", "B/empty/l": "-> ../x",
				"out": "d---------", "out/secret": "SECRET",
			}, picture(t, g.dir))
		})
	}
}

func TestRenameRefuses(t *testing.T) {
	for name, rename := range renames {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			mkdir(t, filepath.Join(g.a, "empty"))
			link(t, g.out, filepath.Join(g.a, "to-out"))
			link(t, "d", filepath.Join(g.a, "to-d"))
			before := picture(t, g.dir)
			var outside *workspace.OutsideError
			for _, c := range []struct {
				from, to string
				o        workspace.RenameOptions
				want     error
			}{
				{"no", "x", workspace.RenameOptions{}, fs.ErrNotExist},
				{"f", "no/x", workspace.RenameOptions{}, fs.ErrNotExist},
				{"f", "empty", workspace.RenameOptions{}, syscall.EISDIR},
				{"d", "f", workspace.RenameOptions{}, syscall.ENOTDIR},
				{"f", "x/", workspace.RenameOptions{}, syscall.ENOTDIR},
				{"f/", "x", workspace.RenameOptions{}, syscall.ENOTDIR},
				{"f", "to-d/", workspace.RenameOptions{}, syscall.ENOTDIR},
				{"empty", "d", workspace.RenameOptions{}, syscall.ENOTEMPTY},
				{"d", "d/e/x", workspace.RenameOptions{}, syscall.EINVAL},
				{"d", "to-d/x", workspace.RenameOptions{}, syscall.EINVAL},
				{"f", "../B/f", workspace.RenameOptions{Create: workspace.CreateOnly}, fs.ErrExist},
				{"f", "../B/x", workspace.RenameOptions{Create: workspace.ReplaceOnly}, fs.ErrNotExist},
				{"", "x", workspace.RenameOptions{}, fs.ErrInvalid},
				{"f", "x\x00", workspace.RenameOptions{}, fs.ErrInvalid},
				{"f", "../out/x", workspace.RenameOptions{}, nil},
				{"../out/secret", "x", workspace.RenameOptions{}, nil},
				{"to-out/secret", "x", workspace.RenameOptions{}, nil},
				{"f", "to-out/x", workspace.RenameOptions{}, nil},
			} {
				_, err := rename(g.ws, t.Context(), c.from, c.to, c.o)
				if c.want == nil {
					require.ErrorAs(t, err, &outside, "%s to %s", c.from, c.to)
				} else {
					require.ErrorIs(t, err, c.want, "%s to %s", c.from, c.to)
				}
				require.Equal(t, before, picture(t, g.dir), "%s to %s", c.from, c.to)
			}
			ref, err := rename(g.ws, t.Context(), "f", "new", workspace.RenameOptions{Create: workspace.CreateOnly})
			require.NoError(t, err)
			require.Equal(t, "new", ref.Rel())
		})
	}
}

func TestRenameByACopyKeepsWhatItCan(t *testing.T) {
	g := newGrounds(t)
	long := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for path, perm := range map[string]fs.FileMode{"d/e/f": 0o640, "d/e": 0o750} {
		require.NoError(t, os.Chmod(filepath.Join(g.a, path), perm))
		require.NoError(t, os.Chtimes(filepath.Join(g.a, path), long, long))
	}
	_, err := g.ws.RenameByCopy(t.Context(), "d", "../B/tree", workspace.RenameOptions{})
	require.NoError(t, err)
	for path, perm := range map[string]fs.FileMode{"tree/e/f": 0o640, "tree/e": 0o750} {
		info, err := os.Stat(filepath.Join(g.b, path))
		require.NoError(t, err)
		require.Equal(t, perm, info.Mode().Perm())
		require.True(t, info.ModTime().Equal(long), path)
	}
}

func TestRenameByACopyIsAllOrNothing(t *testing.T) {
	g := newGrounds(t)
	for _, name := range []string{"1", "2", "3"} {
		write(t, filepath.Join(g.a, "d", name), "0123456789")
	}
	before := picture(t, g.dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(syscall.ECANCELED)
	_, err := g.ws.RenameByCopy(ctx, "d", "../B/new", workspace.RenameOptions{})
	require.ErrorIs(t, err, syscall.ECANCELED)
	for _, o := range []workspace.RenameOptions{{MaxEntries: 4}, {MaxBytes: 25}} {
		_, err := g.ws.RenameByCopy(t.Context(), "d", "../B/new", o)
		var limit *workspace.LimitError
		require.ErrorAs(t, err, &limit)
	}
	require.Equal(t, before, picture(t, g.dir), "nothing is left")
	_, err = g.ws.RenameByCopy(t.Context(), "d", "../B/new", workspace.RenameOptions{MaxEntries: 6, MaxBytes: 37})
	require.NoError(t, err)
}

func TestRenameByACopyTakesTheLargestBounds(t *testing.T) {
	g := newGrounds(t)
	_, err := g.ws.RenameByCopy(t.Context(), "d", "../B/new", workspace.RenameOptions{MaxEntries: math.MaxInt, MaxBytes: math.MaxInt64})
	require.NoError(t, err)
	requireRead(t, g.ws, "../B/new/e/f", "A/d/e/f", 1, "new/e/f")
}

// The last step is the only one that can fail when the old thing has been taken away.
func TestRenameByACopyGivesBackWhatItTook(t *testing.T) {
	g := newGrounds(t)
	before := picture(t, g.dir)
	full := func() error { return syscall.ENOSPC }
	_, err := g.ws.RenameByCopyAnd(t.Context(), "d", "../B/new", workspace.RenameOptions{}, full)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, before, picture(t, g.dir))

	taken := func() error {
		write(t, filepath.Join(g.a, "d"), "somebody else's")
		return syscall.ENOSPC
	}
	_, err = g.ws.RenameByCopyAnd(t.Context(), "d", "../B/new", workspace.RenameOptions{}, taken)
	var stranded *workspace.StrandedError
	require.ErrorAs(t, err, &stranded)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Contains(t, err.Error(), stranded.At.Path())
	requireRead(t, g.ws, "d", "somebody else's", 0, "d")
	requireRead(t, g.ws, stranded.At.Path()+"/e/f", "A/d/e/f", 0, stranded.At.Rel()+"/e/f")
	require.NotContains(t, picture(t, g.b), "new")
}

// interrupted is a context that does something when it is asked for the nth time.
type interrupted struct {
	context.Context
	n  int
	it func()
}

func (c *interrupted) Err() error {
	if c.n--; c.n == 0 {
		c.it()
	}
	return c.Context.Err()
}

func TestC11_WhatChangesWhileItIsCopiedStays(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"written": func(t *testing.T, dir string) { write(t, filepath.Join(dir, "f"), "written meanwhile") },
		"made":    func(t *testing.T, dir string) { write(t, filepath.Join(dir, "new"), "made meanwhile") },
		"removed": func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "f"))) },
		"moved": func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "f"), filepath.Join(dir, "g")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"d", "d/e/f"} {
				for n := 2; n < 10; n++ {
					g := newGrounds(t)
					write(t, filepath.Join(g.a, "d/e/g"), "text")
					var want map[string]string
					ctx := &interrupted{t.Context(), n, func() {
						change(t, filepath.Join(g.a, "d/e"))
						want = picture(t, g.a)
					}}
					_, err := g.ws.RenameByCopy(ctx, path, "../B/new", workspace.RenameOptions{})
					if err != nil {
						require.NotContains(t, picture(t, g.b), "new")
						require.Equal(t, want, picture(t, g.a), "%s, %d: %v", path, n, err)
						continue
					}
					// It came before it was looked at, or is no part of it.
					texts := slices.Collect(maps.Values(picture(t, g.dir)))
					if want != nil && (name == "written" || name == "made") {
						require.Contains(t, texts, name+" meanwhile", "%s, %d", path, n)
					}
				}
			}
		})
	}
}

// Between file systems that are two.
func TestRenameBetweenFileSystems(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "workspace")
	if err != nil {
		t.Skip("there is no second file system:", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	root := realDir(t)
	write(t, filepath.Join(root, "d/e/f"), "text")
	link(t, "/etc/passwd", filepath.Join(root, "d/l"))
	if err := os.Rename(filepath.Join(root, "d/l"), filepath.Join(other, "l")); !errors.Is(err, syscall.EXDEV) {
		t.Skip("there is no second file system:", err)
	}
	ws := open(t, root, other)
	ref, err := ws.Rename(t.Context(), "d", filepath.Join(other, "moved"), workspace.RenameOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, ref.Root().Index)
	require.Equal(t, map[string]string{".": "d---------"}, picture(t, root))
	require.Equal(t, map[string]string{
		".": "d---------", "moved": "d---------", "moved/e": "d---------", "moved/e/f": "text", "moved/l": "-> /etc/passwd",
	}, picture(t, other))
}

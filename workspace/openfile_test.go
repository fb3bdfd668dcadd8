package workspace_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestOpenFile(t *testing.T) {
	g := newGrounds(t)
	f, err := g.ws.OpenFile("f", os.O_RDWR, workspace.OpenOptions{})
	require.NoError(t, err)
	_, err = f.Write([]byte("1"))
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("3"), 2)
	require.NoError(t, err)
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "1/3", string(text))
	require.NoError(t, f.Truncate(1))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.Equal(t, filepath.Join(g.a, "f"), f.Ref().Path())
	requireRead(t, g.ws, "f", "1", 0, "f")

	f, err = g.ws.OpenFile("f", os.O_WRONLY|os.O_APPEND, workspace.OpenOptions{})
	require.NoError(t, err)
	_, err = f.WriteString("23")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.NoError(t, f.Close())
	requireRead(t, g.ws, "f", "123", 0, "f")

	f, err = g.ws.OpenFile("f", os.O_RDONLY, workspace.OpenOptions{})
	require.NoError(t, err)
	_, err = f.Write([]byte("x"))
	require.Error(t, err)
	require.NoError(t, f.Close())

	f, err = g.ws.OpenFile("touched", os.O_RDONLY|os.O_CREATE, workspace.OpenOptions{Perm: 0o600})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	requireRead(t, g.ws, "touched", "", 0, "touched")

	for _, c := range []struct {
		path string
		flag int
		want error
	}{
		{"new", os.O_WRONLY, fs.ErrNotExist},
		{"f", os.O_WRONLY | os.O_CREATE | os.O_EXCL, fs.ErrExist},
		{"d", os.O_WRONLY, syscall.EISDIR},
		{"d", os.O_WRONLY | os.O_CREATE, syscall.EISDIR},
		{"new/", os.O_WRONLY | os.O_CREATE, fs.ErrNotExist},
		{"new/", os.O_WRONLY | os.O_CREATE | os.O_EXCL, syscall.EISDIR},
		{".", os.O_WRONLY | os.O_CREATE | os.O_EXCL, fs.ErrExist},
		{"f/", os.O_WRONLY, syscall.ENOTDIR},
		{"f", os.O_TRUNC, syscall.EINVAL},
		{"f", os.O_WRONLY | os.O_RDWR, syscall.EINVAL},
		{"f", os.O_WRONLY | 1<<30, syscall.EINVAL},
	} {
		_, err := g.ws.OpenFile(c.path, c.flag, workspace.OpenOptions{})
		require.ErrorIs(t, err, c.want, "%s %x", c.path, c.flag)
	}
	requireRead(t, g.ws, "f", "123", 0, "f")
}

func TestC4_ALinkIsInTheWayOfANewFile(t *testing.T) {
	g := newGrounds(t)
	for name, target := range map[string]string{"in": "new", "out": filepath.Join(g.out, "new"), "loop": "loop", "file": "f"} {
		link(t, target, filepath.Join(g.a, name))
		_, err := g.ws.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, workspace.OpenOptions{})
		require.ErrorIs(t, err, fs.ErrExist, name)
	}
	require.NoFileExists(t, filepath.Join(g.a, "new"))
	require.NoFileExists(t, filepath.Join(g.out, "new"))
}

func TestAppendAndTruncate(t *testing.T) {
	g := newGrounds(t)
	ctx := t.Context()
	ref, err := g.ws.Append(ctx, "../B/log", []byte("one\n"), workspace.InPlaceOptions{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(g.b, "log"), ref.Path())
	_, err = g.ws.Append(ctx, "../B/log", []byte("two\n"), workspace.InPlaceOptions{Create: workspace.ReplaceOnly})
	require.NoError(t, err)
	requireRead(t, g.ws, "../B/log", "one\ntwo\n", 1, "log")
	_, err = g.ws.Append(ctx, "../B/log", nil, workspace.InPlaceOptions{Create: workspace.CreateOnly})
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = g.ws.Append(ctx, "../B/no", nil, workspace.InPlaceOptions{Create: workspace.ReplaceOnly})
	require.ErrorIs(t, err, fs.ErrNotExist)
	var large *workspace.TooLargeError
	_, err = g.ws.Append(ctx, "../B/log", []byte("more"), workspace.InPlaceOptions{MaxSize: 3})
	require.ErrorAs(t, err, &large)

	_, err = g.ws.Truncate("../B/log", 3, workspace.InPlaceOptions{})
	require.NoError(t, err)
	requireRead(t, g.ws, "../B/log", "one", 1, "log")
	_, err = g.ws.Truncate("../B/log", 5, workspace.InPlaceOptions{})
	require.NoError(t, err)
	requireRead(t, g.ws, "../B/log", "one\x00\x00", 1, "log")
	_, err = g.ws.Truncate("../B/log", 1<<40, workspace.InPlaceOptions{})
	require.ErrorAs(t, err, &large)
	_, err = g.ws.Truncate("../B/log", -1, workspace.InPlaceOptions{})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = g.ws.Truncate("no", 0, workspace.InPlaceOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	requireRead(t, g.ws, "../B/log", "one\x00\x00", 1, "log")

	cancelled, cancel := context.WithCancelCause(ctx)
	cancel(syscall.ECANCELED)
	_, err = g.ws.Append(cancelled, "f", []byte("x"), workspace.InPlaceOptions{})
	require.ErrorIs(t, err, syscall.ECANCELED)
	requireRead(t, g.ws, "f", "A/f", 0, "f")
}

// inPlace are the changes that would show under a file's other names.
var inPlace = []string{"Append", "Truncate", "OpenFile", "OpenFile, create", "Fs.Create", "Fs.Chmod"}

func TestC12_AFileWithOtherNamesIsNotChangedInPlace(t *testing.T) {
	g := newGrounds(t)
	secret := filepath.Join(g.out, "secret")
	require.NoError(t, os.Link(secret, filepath.Join(g.a, "name")))
	link(t, "name", filepath.Join(g.a, "to-name"))
	for _, way := range inPlace {
		for _, path := range []string{"name", "to-name"} {
			var linked *workspace.HardLinkError
			require.ErrorAs(t, changes[way](g.ws, path), &linked, "%s %s", way, path)
			require.EqualValues(t, 2, linked.Links)
			require.Equal(t, "SECRET", picture(t, g.out)["secret"])
		}
	}
	text, err := os.Stat(secret)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), text.Mode())

	_, err = g.ws.Append(t.Context(), "name", []byte("+"), workspace.InPlaceOptions{HardLinks: workspace.AllowHardLinks})
	require.NoError(t, err)
	require.Equal(t, "SECRET+", picture(t, g.out)["secret"], "whoever asks for it gets it")
	fsys := g.ws.FsWith(workspace.FsOptions{Access: workspace.ReadWrite, HardLinks: workspace.AllowHardLinks})
	require.NoError(t, fsys.Chmod("name", 0o600))

	require.NoError(t, moveOnto(g.ws, "name", workspace.RenameOptions{}), "a name may be taken")
	require.Equal(t, "SECRET+", picture(t, g.out)["secret"])
	require.NoError(t, changes["Append"](g.ws, "name"), "it is a file of its own now")
	require.Equal(t, "SECRET+", picture(t, g.out)["secret"])
	require.NoError(t, os.Link(secret, filepath.Join(g.a, "another")))
	require.NoError(t, g.ws.Remove("another", workspace.RemoveOptions{}))
	require.Equal(t, "SECRET+", picture(t, g.out)["secret"])
}

func TestC12_ALinkIsChangedThrough(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "d/f"), filepath.Join(g.a, "l"))
	link(t, filepath.Join(g.b, "d/new"), filepath.Join(g.a, "dangling"))
	ref, err := g.ws.Append(t.Context(), "l", []byte("+"), workspace.InPlaceOptions{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(g.b, "d/f"), ref.Path())
	_, err = g.ws.Append(t.Context(), "dangling", []byte("+"), workspace.InPlaceOptions{})
	require.NoError(t, err)
	seen := picture(t, g.dir)
	require.Equal(t, "B/d/f+", seen["B/d/f"])
	require.Equal(t, "+", seen["B/d/new"])
	require.Equal(t, "-> "+filepath.Join(g.b, "d/f"), seen["A/l"])
}

func TestNothingIsChangedInAClosedWorkspace(t *testing.T) {
	g := newGrounds(t)
	require.NoError(t, g.ws.Close())
	for name, change := range changes {
		require.ErrorIs(t, change(g.ws, "f"), workspace.ErrClosed, name)
	}
	require.Equal(t, "A/f", picture(t, g.dir)["A/f"])
}

package workspace_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/workspace"
)

// picture describes everything below dir: links by target, files by content.
func picture(tb rapid.TB, dir string) map[string]string {
	tb.Helper()
	seen := make(map[string]string)
	require.NoError(tb, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			seen[rel] = "-> " + target
			return err
		case e.Type().IsRegular():
			text, err := os.ReadFile(path)
			seen[rel] = string(text)
			return err
		default:
			seen[rel] = e.Type().String()
			return nil
		}
	}))
	return seen
}

func put(ws *workspace.Workspace, path, text string) (workspace.Ref, error) {
	return ws.WriteFile(context.Background(), path, []byte(text), workspace.WriteOptions{})
}

// Clause C11.
func TestWriteChangedFile(t *testing.T) {
	g := newGrounds(t)
	read := workspace.VersionOf([]byte("A/f"))
	_, err := g.ws.WriteFile(t.Context(), "f", []byte("one"),
		workspace.WriteOptions{IfUnchanged: read})
	require.NoError(t, err)
	for _, now := range []string{"two", "longer", ""} { // of the same size, and not
		write(t, filepath.Join(g.a, "f"), now)
		before := picture(t, g.dir)
		_, err = g.ws.WriteFile(t.Context(), "f", []byte("three"),
			workspace.WriteOptions{IfUnchanged: workspace.VersionOf([]byte("one"))})
		var changed *workspace.ChangedError
		require.ErrorAs(t, err, &changed)
		require.Contains(t, err.Error(), "f has changed")
		require.Equal(t, before, picture(t, g.dir), "and no temporary file is left")
	}
	require.NotEqual(t, workspace.Version{}, workspace.VersionOf(nil))
	_, err = g.ws.WriteFile(t.Context(), "f", []byte("empty was enough"),
		workspace.WriteOptions{IfUnchanged: workspace.VersionOf(nil)})
	require.NoError(t, err)

	require.NoError(t, os.Remove(filepath.Join(g.a, "f")))
	_, err = g.ws.WriteFile(t.Context(), "f", nil, workspace.WriteOptions{IfUnchanged: read})
	var changed *workspace.ChangedError
	require.ErrorAs(t, err, &changed, "it is gone")
}

func TestWriteFileCreates(t *testing.T) {
	g := newGrounds(t)
	for _, c := range []struct {
		path   string
		create workspace.Create
		err    error
	}{
		{"f", workspace.CreateOnly, fs.ErrExist},
		{"new", workspace.ReplaceOnly, fs.ErrNotExist},
		{"f", workspace.ReplaceOnly, nil},
		{"new", workspace.CreateOnly, nil},
		{"new", workspace.CreateOrReplace, nil},
	} {
		want := picture(t, g.dir)
		_, err := g.ws.WriteFile(t.Context(), c.path, []byte("x"),
			workspace.WriteOptions{Create: c.create})
		require.ErrorIs(t, err, c.err)
		if c.err == nil {
			want["A/"+c.path] = "x"
		}
		require.Equal(t, want, picture(t, g.dir))
	}
}

func TestMaxWrite(t *testing.T) {
	g := newGrounds(t)
	_, err := g.ws.WriteFile(t.Context(), "f", make([]byte, workspace.MaxWrite+1),
		workspace.WriteOptions{})
	var large *workspace.TooLargeError
	require.ErrorAs(t, err, &large)
	require.EqualValues(t, workspace.MaxWrite+1, large.Size)
	require.EqualValues(t, workspace.MaxWrite, large.Limit)
	requireRead(t, g.ws, "f", "A/f", 0, "f")
}

func TestWriteFileCancelled(t *testing.T) {
	g := newGrounds(t)
	before := picture(t, g.dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(syscall.ECANCELED)
	for _, path := range []string{"f", "new"} {
		for _, data := range []string{"", "x", strings.Repeat("x", 3<<20)} {
			_, err := g.ws.WriteFile(ctx, path, []byte(data), workspace.WriteOptions{})
			require.ErrorIs(t, err, syscall.ECANCELED)
		}
	}
	require.Equal(t, before, picture(t, g.dir))
}

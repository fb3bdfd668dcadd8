package workspace_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) {
	volume.Checks(40, 400)
	goleak.VerifyTestMain(m, dirtest.InMemory())
}

// realDir returns the real path of a new empty directory.
func realDir(tb testing.TB) string {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	require.NoError(tb, err)
	return dir
}

// write creates a file and the directories above it.
func write(tb testing.TB, path, text string) {
	tb.Helper()
	require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(tb, os.WriteFile(path, []byte(text), 0o644))
}

func mkdir(tb testing.TB, path string) string {
	tb.Helper()
	require.NoError(tb, os.MkdirAll(path, 0o755))
	return path
}

// link creates a link and the directories above it.
func link(tb testing.TB, target, path string) {
	tb.Helper()
	require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(tb, os.Symlink(target, path))
}

// open opens the directories as roots, without a policy.
func open(tb testing.TB, cwd string, additional ...string) *workspace.Workspace {
	tb.Helper()
	return openWith(tb, workspace.Options{}, cwd, additional...)
}

func openWith(tb testing.TB, o workspace.Options, cwd string,
	additional ...string) *workspace.Workspace {
	tb.Helper()
	roots, err := workspace.NewRoots(cwd, additional)
	require.NoError(tb, err)
	ws, err := workspace.Open(context.Background(), roots, o)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, ws.Close()) })
	return ws
}

// read returns the content of path and where it is.
func read(ws *workspace.Workspace, path string) (string, workspace.Ref, error) {
	f, err := ws.Open(path)
	if err != nil {
		return "", workspace.Ref{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), f.Ref(), err
}

// requireRead requires that path leads to text, at rel in root.
func requireRead(tb testing.TB, ws *workspace.Workspace, path, text string, root int, rel string) {
	tb.Helper()
	got, ref, err := read(ws, path)
	require.NoError(tb, err, path)
	require.Equal(tb, text, got, path)
	require.Equal(tb, root, ref.Root().Index, path)
	require.Equal(tb, rel, ref.Rel(), path)
}

// ways are the ways to access a path.
var ways = map[string]func(*workspace.Workspace, string) error{
	"Open": func(ws *workspace.Workspace, path string) error {
		f, err := ws.Open(path)
		if err == nil {
			_ = f.Close()
		}
		return err
	},
	"OpenDir": func(ws *workspace.Workspace, path string) error {
		d, err := ws.OpenDir(path)
		if err == nil {
			_ = d.Close()
		}
		return err
	},
	"Stat": func(ws *workspace.Workspace, path string) error {
		_, err := ws.Stat(path)
		return err
	},
	"Walk": func(ws *workspace.Workspace, path string) error {
		return walk(context.Background(), ws, path, func(v visit) error { return v.Err })
	},
	"WriteFile": func(ws *workspace.Workspace, path string) error {
		_, err := ws.WriteFile(context.Background(), path, nil,
			workspace.WriteOptions{Create: workspace.ReplaceOnly})
		return err
	},
	"WriteTarget, WriteFile": func(ws *workspace.Workspace, path string) error {
		if _, err := ws.WriteTarget(path); err != nil {
			return err
		}
		_, err := ws.WriteFile(context.Background(), path, nil,
			workspace.WriteOptions{Create: workspace.ReplaceOnly})
		return err
	},
	"Fs.Open": func(ws *workspace.Workspace, path string) error {
		f, err := ws.Fs().Open(path)
		if err == nil {
			_ = f.Close()
		}
		return err
	},
	"Fs.Stat": func(ws *workspace.Workspace, path string) error {
		_, err := ws.Fs().Stat(path)
		return err
	},
}

// changes are the ways to change what is at a path.
var changes = map[string]func(*workspace.Workspace, string) error{
	"WriteFile": func(ws *workspace.Workspace, path string) error {
		_, err := put(ws, path, "WRITTEN")
		return err
	},
	"WriteFile, new": func(ws *workspace.Workspace, path string) error {
		_, err := ws.WriteFile(context.Background(), path, []byte("WRITTEN"),
			workspace.WriteOptions{Create: workspace.CreateOnly})
		return err
	},
	"Mkdir": func(ws *workspace.Workspace, path string) error {
		return ws.Mkdir(path, workspace.Ref{})
	},
	"Remove": func(ws *workspace.Workspace,
		path string) error {
		return ws.Remove(path, workspace.RemoveOptions{})
	},
	"Rename from": func(ws *workspace.Workspace, path string) error {
		return ws.Rename(path, fresh("moved"), workspace.Ref{}, workspace.Ref{})
	},
	"Rename to": moveOnto,
	"Fs.Create": func(ws *workspace.Workspace, path string) error {
		return afero.WriteFile(ws.Fs(), path, []byte("WRITTEN"), 0o644)
	},
}

// fresh returns an unused name.
func fresh(prefix string) string { return prefix + rand.Text() }

// moveOnto moves a new file to path.
func moveOnto(ws *workspace.Workspace, path string) error {
	name := fresh("mover")
	if _, err := put(ws, name, "WRITTEN"); err != nil {
		return err
	}
	err := ws.Rename(name, path, workspace.Ref{}, workspace.Ref{})
	if err != nil {
		_ = ws.Remove(name, workspace.RemoveOptions{})
	}
	return err
}

// visit is something that walk found.
type visit struct {
	workspace.Entry
	Err    error // why a directory could not be read
	folder *workspace.Folder
}

func (v visit) Ref() workspace.Ref {
	if v.Err != nil {
		return v.folder.Ref()
	}
	return v.folder.RefOf(v.Entry)
}

func (v visit) Open() (*workspace.File, error) { return v.folder.Open(v.Entry) }

// walk visits everything below start, one folder after the other.
func walk(ctx context.Context, ws *workspace.Workspace, start string, fn func(visit) error) error {
	return ws.Walk(ctx, start, workspace.WalkOptions{}.WithWorkers(1),
		func(f *workspace.Folder) func() error {
			var err error
			if f.Err != nil {
				err = fn(visit{workspace.Entry{Name: path.Base(f.Ref().Rel())}, f.Err, f})
			}
			for _, e := range f.Entries {
				if err == nil {
					err = fn(visit{e, nil, f})
				}
			}
			return func() error { return err }
		})
}

// rootErrors returns the RootErrors that err is, nil if it is none.
func rootErrors(err error) workspace.RootErrors {
	var errs workspace.RootErrors
	errors.As(err, &errs)
	return errs
}

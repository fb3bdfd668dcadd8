package workspace_test

import (
	"context"
	"crypto/rand"
	"os"

	"github.com/acp-agent/acp-agent/workspace"
)

// changes are the ways to change what is at a path: each would do it if it could.
var changes = map[string]func(*workspace.Workspace, string) error{
	"WriteFile": func(ws *workspace.Workspace, path string) error {
		_, err := put(ws, path, "WRITTEN")
		return err
	},
	"WriteFile, new": func(ws *workspace.Workspace, path string) error {
		_, err := ws.WriteFile(context.Background(), path, []byte("WRITTEN"), workspace.WriteOptions{Create: workspace.CreateOnly})
		return err
	},
	"Append": func(ws *workspace.Workspace, path string) error {
		_, err := ws.Append(context.Background(), path, []byte("WRITTEN"), workspace.InPlaceOptions{})
		return err
	},
	"Truncate": func(ws *workspace.Workspace, path string) error {
		_, err := ws.Truncate(path, 1, workspace.InPlaceOptions{})
		return err
	},
	"OpenFile": func(ws *workspace.Workspace, path string) error {
		return scribble(ws.OpenFile(path, os.O_RDWR, workspace.OpenOptions{}))
	},
	"OpenFile, create": func(ws *workspace.Workspace, path string) error {
		return scribble(ws.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, workspace.OpenOptions{}))
	},
	"OpenFile, new": func(ws *workspace.Workspace, path string) error {
		return scribble(ws.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, workspace.OpenOptions{}))
	},
	"Mkdir": func(ws *workspace.Workspace, path string) error {
		_, err := ws.Mkdir(path, 0o755, workspace.MkdirOptions{})
		return err
	},
	"MkdirAll": func(ws *workspace.Workspace, path string) error {
		_, err := ws.MkdirAll(path, 0o755)
		return err
	},
	"Remove": func(ws *workspace.Workspace, path string) error { return ws.Remove(path, workspace.RemoveOptions{}) },
	"RemoveAll": func(ws *workspace.Workspace, path string) error {
		return ws.RemoveAll(context.Background(), path, workspace.RemoveOptions{})
	},
	"Rename from": func(ws *workspace.Workspace, path string) error {
		_, err := ws.Rename(context.Background(), path, fresh("moved"), workspace.RenameOptions{})
		return err
	},
	"Rename to": func(ws *workspace.Workspace, path string) error {
		return moveOnto(ws, path, workspace.RenameOptions{})
	},
	"Fs.Chmod": func(ws *workspace.Workspace, path string) error { // to what would harm no directory
		return ws.FsWith(workspace.FsOptions{Access: workspace.ReadWrite}).Chmod(path, 0o775)
	},
	"Fs.Create": func(ws *workspace.Workspace, path string) error {
		f, err := ws.FsWith(workspace.FsOptions{Access: workspace.ReadWrite}).Create(path)
		if err != nil {
			return err
		}
		_, _ = f.WriteString("WRITTEN")
		return f.Close()
	},
}

// fresh is a name that nobody has used.
func fresh(prefix string) string { return prefix + rand.Text() }

// scribble writes to what was opened.
func scribble(f *workspace.WritableFile, err error) error {
	if err != nil {
		return err
	}
	_, writeErr := f.WriteString("WRITTEN")
	if err := f.Close(); err != nil {
		return err
	}
	return writeErr
}

// moveOnto moves a new file to path.
func moveOnto(ws *workspace.Workspace, path string, o workspace.RenameOptions) error {
	name := fresh("mover")
	if err := scribble(ws.OpenFile(name, os.O_WRONLY|os.O_CREATE, workspace.OpenOptions{})); err != nil {
		return err
	}
	_, err := ws.Rename(context.Background(), name, path, o)
	if err != nil {
		_ = ws.Remove(name, workspace.RemoveOptions{})
	}
	return err
}

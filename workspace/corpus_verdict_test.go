//go:build linux || darwin

package workspace_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
)

// operation is one of those that every attempt is made by. It returns all that it learned.
type operation struct {
	name    string
	do      func(ws *workspace.Workspace, path string) (string, error)
	changes bool
}

// changing is a change that learns nothing.
func changing(name, change string) operation {
	return operation{name: name, changes: true, do: func(ws *workspace.Workspace, path string) (string, error) {
		return "", changes[change](ws, path)
	}}
}

var operations = []operation{
	{name: "read", do: func(ws *workspace.Workspace, path string) (string, error) {
		text, _, err := read(ws, path)
		return text, err
	}},
	{name: "text", do: func(ws *workspace.Workspace, path string) (string, error) {
		text, err := ws.ReadText(context.Background(), path, workspace.TextOptions{})
		return text.Content, err
	}},
	{name: "list", do: func(ws *workspace.Workspace, path string) (string, error) {
		d, err := ws.OpenDir(path)
		if err != nil {
			return "", err
		}
		defer d.Close()
		entries, err := d.Entries(context.Background())
		var names strings.Builder
		for _, e := range entries {
			names.WriteString(e.Name + "\n")
		}
		return names.String(), err
	}},
	{name: "search", do: searchAll},
	{name: "stat", do: func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.Stat(path)
		return "", err
	}},
	{name: "lstat", do: func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.Lstat(path)
		return "", err
	}},
	{name: "readlink", do: func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.Readlink(path)
		return "", err
	}},
	{name: "fs-read", do: func(ws *workspace.Workspace, path string) (string, error) {
		f, err := ws.Fs().Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if names, err := f.Readdirnames(0); err == nil {
			return strings.Join(names, "\n"), nil
		}
		text, err := io.ReadAll(f)
		return string(text), err
	}},
	changing("write", "WriteFile"),
	changing("write-new", "WriteFile, new"),
	changing("open", "OpenFile"),
	changing("create", "OpenFile, new"),
	changing("append", "Append"),
	changing("truncate", "Truncate"),
	changing("fs-create", "Fs.Create"),
	changing("chmod", "Fs.Chmod"),
	changing("mkdir", "Mkdir"),
	changing("mkdirall", "MkdirAll"),
	changing("rename-from", "Rename from"),
	changing("rename-to", "Rename to"),
	{name: "copy-from", changes: true, do: func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.RenameByCopy(context.Background(), path, fresh("moved"), workspace.RenameOptions{})
		return "", err
	}},
	changing("remove", "Remove"),
	changing("removeall", "RemoveAll"),
}

// searchAll reads every file below path, as far as it can.
func searchAll(ws *workspace.Workspace, path string) (string, error) {
	var found strings.Builder
	err := ws.Walk(context.Background(), path, func(v workspace.Visit) error {
		found.WriteString(v.Name + "\n")
		if v.Type.IsDir() {
			return nil
		}
		f, err := v.Open()
		if err != nil {
			return nil
		}
		defer f.Close()
		_, err = io.Copy(&found, f)
		return err
	})
	return found.String(), err
}

func operationNames() []string {
	names := make([]string, len(operations))
	for i, op := range operations {
		names[i] = op.name
	}
	return names
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// verdicts are what may come of an operation.
var verdicts = map[string]func(error) bool{
	"ok":         func(err error) bool { return err == nil },
	"refused":    func(err error) bool { return err != nil },
	"any":        func(error) bool { return true },
	"outside":    as[*workspace.OutsideError],
	"denied":     as[*workspace.DeniedError],
	"protected":  as[*workspace.ProtectedError],
	"special":    as[*workspace.SpecialFileError],
	"linked":     as[*workspace.HardLinkError],
	"missing":    is(fs.ErrNotExist),
	"exists":     is(fs.ErrExist),
	"invalid":    func(err error) bool { return errors.Is(err, fs.ErrInvalid) || errors.Is(err, syscall.EINVAL) },
	"permission": is(os.ErrPermission),
	"isdir":      is(syscall.EISDIR),
	"notdir":     is(syscall.ENOTDIR),
	"notempty":   is(syscall.ENOTEMPTY),
	"loop":       is(syscall.ELOOP),
	"toolong":    is(syscall.ENAMETOOLONG),
}

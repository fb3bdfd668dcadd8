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
	name string
	do   func(ws *workspace.Workspace, path string) (string, error)
}

// changing is a change that learns nothing.
func changing(name, change string) operation {
	return operation{name, func(ws *workspace.Workspace, path string) (string, error) { return "", changes[change](ws, path) }}
}

var operations = []operation{
	{"read", func(ws *workspace.Workspace, path string) (string, error) {
		text, _, err := read(ws, path)
		return text, err
	}},
	{"text", func(ws *workspace.Workspace, path string) (string, error) {
		text, err := ws.ReadText(context.Background(), path, workspace.TextOptions{})
		return text.Content, err
	}},
	{"list", func(ws *workspace.Workspace, path string) (string, error) {
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
	{"search", searchAll},
	{"stat", func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.Stat(path)
		return "", err
	}},
	{"lstat", func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.Lstat(path)
		return "", err
	}},
	{"readlink", func(ws *workspace.Workspace, path string) (string, error) {
		_, err := ws.Readlink(path)
		return "", err
	}},
	{"fs-read", func(ws *workspace.Workspace, path string) (string, error) {
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
	{"copy-from", func(ws *workspace.Workspace, path string) (string, error) {
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

// classes are what a path can be: the verdict for it by operation, and by "" for all others.
var classes = map[string]map[string]string{
	"outside": {"": "outside"},
	"denied":  {"": "denied"},
	"invalid": {"": "invalid"},
	"toolong": {"": "toolong"},
	"notdir":  {"": "notdir"},
	"refused": {"": "refused"},
	"safe":    {"": "any"},
	"file":    verdictsFor("ok", "notdir", "list search mkdirall", "exists", "write-new create mkdir", "invalid", "readlink"),
	"linked": verdictsFor("ok", "notdir", "list search mkdirall", "exists", "write-new create mkdir", "invalid", "readlink",
		"linked", "open append truncate fs-create chmod"),
	"read-only": verdictsFor("ok", "notdir", "list search mkdirall", "exists", "write-new create mkdir", "invalid", "readlink",
		"permission", "write open append truncate fs-create rename-to"),
	"dir": verdictsFor("ok", "isdir", "read text write write-new open append truncate fs-create rename-to", "exists", "create mkdir",
		"invalid", "readlink", "notempty", "remove"),
	"root": verdictsFor("ok", "isdir", "read text write write-new open append truncate fs-create", "exists", "create mkdir",
		"invalid", "readlink", "protected", "rename-from rename-to copy-from remove removeall"),
	"missing": verdictsFor("missing", "ok", "write write-new create append fs-create mkdir mkdirall rename-to removeall"),
	"nowhere": verdictsFor("missing", "ok", "mkdirall removeall"),
	"special": verdictsFor("special", "notdir", "list search mkdirall", "ok", "stat lstat rename-from remove removeall",
		"exists", "create mkdir", "invalid", "readlink"),
	// A link that leads outside is a name inside, which may be moved and removed.
	"link-out":  verdictsFor("outside", "ok", "lstat readlink rename-from rename-to copy-from remove removeall", "exists", "create mkdir"),
	"link-out/": verdictsFor("outside", "notdir", "rename-from rename-to copy-from remove removeall", "exists", "create mkdir"),
	"link-denied": verdictsFor("denied", "ok", "lstat readlink rename-from rename-to copy-from remove removeall",
		"exists", "create mkdir"),
	"loop": verdictsFor("loop", "ok", "lstat readlink rename-from rename-to copy-from remove removeall", "exists", "create mkdir"),
}

// verdictsFor are the verdict for most operations, and pairs of one and the operations that it is for.
func verdictsFor(most string, pairs ...string) map[string]string {
	all := map[string]string{"": most}
	for i := 0; i < len(pairs); i += 2 {
		for op := range strings.FieldsSeq(pairs[i+1]) {
			all[op] = pairs[i]
		}
	}
	return all
}

// verdict is what is to come of the attempt by an operation.
func (a attempt) verdict(op string) string {
	if v, ok := a.except[op]; ok {
		return v
	}
	if v, ok := classes[a.class][op]; ok {
		return v
	}
	return classes[a.class][""]
}

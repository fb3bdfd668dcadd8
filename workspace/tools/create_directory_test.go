package tools

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestCreateDirectory(t *testing.T) {
	app, lib := plant(t, fileTree{"a": "x\n"}), plant(t, fileTree{"d/b": "x\n"})
	symlink(t, filepath.Join(lib, "d"), filepath.Join(app, "link"))
	h := serve(t, openRoots(t, app, lib), Options{})
	require.Equal(t, location{filepath.Join(lib, "d/new"), lib}.String()+" was created\n",
		h.said("create_directory", args{"path": "link/new"}))
	require.DirExists(t, filepath.Join(lib, "d/new"))
	require.Equal(t, "create directory "+filepath.Join(lib, "d/new"), h.asked[0].String())
	require.Empty(t, h.asked[0].Diff())

	for _, path := range []string{"a", "link", "link/new", "."} {
		require.ErrorIs(t, h.refused("create_directory", args{"path": path}), fs.ErrExist, path)
	}
	for _, path := range []string{"no/../new", "a/new"} {
		h.refused("create_directory", args{"path": path})
	}
	require.Len(t, h.asked, 1, "nothing is asked about what cannot be done")

	said := h.said("create_directory", args{"path": "one/two/three/"})
	above := filepath.Join(app, "one") + ", " + filepath.Join(app, "one/two")
	require.Contains(t, said, "three (folder "+app+") was created\nalso created: "+above)
	require.DirExists(t, filepath.Join(app, "one/two/three"))
	require.Len(t, h.asked, 2, "there is one question")
	require.Equal(t, "create directory "+filepath.Join(app, "one/two/three")+
		" and its directories "+above, h.asked[1].String())
}

// Clause C11.
func TestTreeChangesAreCheckedAgainAfterPermission(t *testing.T) {
	for name, c := range map[string]struct {
		tool string
		args args
		do   func(t *testing.T, top string)
		want any
	}{
		"create, link to another root": {"create_directory", args{"path": "l/new"}, relink("lib"),
			new(*workspace.MovedError)},
		"create, link out": {"create_directory", args{"path": "l/new"}, relink("out"),
			new(*workspace.OutsideError)},
		"create, created meanwhile": {"create_directory", args{"path": "l/new"},
			rewrite("app/d/new"), new(*fs.PathError)},
		"delete, link to another root": {"delete_file", args{"path": "l/a"}, relink("lib"),
			new(*workspace.MovedError)},
		"delete, link out": {"delete_file", args{"path": "l/a"}, relink("out"),
			new(*workspace.OutsideError)},
		"delete, changed": {"delete_file", args{"path": "l/a"}, rewrite("app/d/a"),
			new(*workspace.ChangedError)},
		"delete, gone": {"delete_file", args{"path": "l/a"}, remove("app/d/a"), new(*fs.PathError)},
		"move, link to another root": {"move_file", args{"path": "l/a", "to": "new"},
			relink("lib"), new(*workspace.MovedError)},
		"move, link out": {"move_file", args{"path": "l/a", "to": "new"},
			relink("out"), new(*workspace.OutsideError)},
		"move to a link elsewhere": {"move_file", args{"path": "b", "to": "l/new"},
			relink("lib"), new(*workspace.MovedError)},
		"move to a link out": {"move_file", args{"path": "b", "to": "l/new"},
			relink("out"), new(*workspace.OutsideError)},
		"move, created meanwhile": {"move_file", args{"path": "b", "to": "l/new"},
			rewrite("app/d/new"), new(*fs.PathError)},
	} {
		t.Run(name, func(t *testing.T) {
			top := plant(t, fileTree{"app/d/a": "one\n", "app/b": "b\n", "lib/a": "one\n",
				"out/a": "one\n"})
			symlink(t, filepath.Join(top, "app/d"), filepath.Join(top, "app/l"))
			h := serve(t, openRoots(t, filepath.Join(top, "app"), filepath.Join(top, "lib")),
				Options{})
			var then fileTree
			h.decide = func(Change) error {
				c.do(t, top)
				then = planted(t, top)
				return nil
			}
			require.ErrorAs(t, h.refused(c.tool, c.args), c.want)
			require.Equal(t, then, planted(t, top))
			require.NoDirExists(t, filepath.Join(top, "lib/new"))
		})
	}
}

func remove(path string) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		require.NoError(t, os.Remove(filepath.Join(top, path)))
	}
}

// What somebody else has put in the place of a directory that was created for a change stays when
// the change fails.
func TestReplacedParentsStay(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"file":      func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o600) },
		"link":      func(path string) error { return os.Symlink("b", path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"content":   func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			top := plant(t, fileTree{"b": ""})
			ws := openRoots(t, top)
			c, err := planDirectory(ws, "one/two/three")
			require.NoError(t, err)
			made, err := c.makeParents(ws)
			require.NoError(t, err)
			two := filepath.Join(top, "one/two")
			require.NoError(t, os.Rename(two, filepath.Join(top, "kept"))) // so its number is not reused
			require.NoError(t, replace(two))
			before := planted(t, top)
			removeMade(ws, made)
			require.Equal(t, before, planted(t, top))
			_, err = os.Lstat(two)
			require.NoError(t, err)
		})
	}
	top := plant(t, fileTree{"b": ""})
	ws := openRoots(t, top)
	c, err := planDirectory(ws, "one/two/three")
	require.NoError(t, err)
	made, err := c.makeParents(ws)
	require.NoError(t, err)
	removeMade(ws, made)
	require.NoDirExists(t, filepath.Join(top, "one"))
}

package tools

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestWriteFile(t *testing.T) {
	app, lib := plant(t, fileTree{"a": "one\ntwo\n"}), plant(t, nil)
	symlink(t, filepath.Join(lib, "b"), filepath.Join(app, "link"))
	h := serve(t, openRoots(t, app, lib), Options{})
	said := h.said("write_file", args{"path": "a", "content": "one\n2\n"})
	a, version := location{filepath.Join(app, "a"), app}.String(), h.read(args{"path": "a"}).Version
	require.Equal(t, a+" was changed, 2 lines, version "+version+
		"\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", said)
	require.Equal(t, a+" already had this content, 2 lines, version "+version+"\n",
		h.said("write_file", args{"path": "a", "content": "one\n2\n"}))
	require.Equal(t, location{filepath.Join(lib, "b"), lib}.String()+" was created, 1 line, version "+
		versionOf("x")+"\n", h.said("write_file", args{"path": "link", "content": "x"}),
		"a link is written through")
	require.Len(t, h.asked, 2, "no permission is asked if nothing changes")

	require.ErrorIs(t, h.refused("write_file", args{"path": "a", "content": "",
		"if_exists": "fail"}), fs.ErrExist)
	require.ErrorIs(t, h.refused("write_file", args{"path": "no/../a", "content": ""}),
		fs.ErrNotExist)
	require.ErrorContains(t, h.refused("write_file", args{"path": ".", "content": ""}),
		"list_directory")
	require.Error(t, h.refused("write_file", args{"path": "a", "content": "a\x00"}))
	require.Len(t, h.asked, 2)
	require.Equal(t, fileTree{"a": "one\n2\n"}, planted(t, app))
}

// The model knows what it wrote, and would read it again in every following request.
func TestResultsOfChangesAreShort(t *testing.T) {
	lines := func(word string) string { return strings.Repeat("a "+word+" that is here\n", 1000) }
	app, h := servePlanted(t, nil)
	for _, content := range []string{lines("line"), lines("row"), strings.Repeat("x", 20_000)} {
		said := h.said("write_file", args{"path": "a", "content": content})
		require.Less(t, len(said)-2*len(app), 1000, said)
		require.Regexp(t, `, 1(000)? lines?, version [0-9a-f]{12}\n`, said)
	}
	said := h.said("write_file", args{"path": "a", "content": lines("row")})
	require.Contains(t, said, "\n[995 lines of the difference not shown]\n")
	said = h.said("edit_file", args{"path": "a", "old_text": "row", "new_text": "line",
		"replace_all": true})
	require.Less(t, strings.Count(said, "\n"), 50)
	said = h.said("edit_file", args{"path": "a", "old_text": "line", "new_text": "row",
		"replace_all": true, "dry_run": true})
	require.Equal(t, 1000, strings.Count(said, "\n+a row"), "it is there to be seen")
}

// Clause A30.
func TestWriteFileCreatesMissingDirectories(t *testing.T) {
	app, lib := plant(t, fileTree{"a": ""}), plant(t, fileTree{"d/x": ""})
	symlink(t, filepath.Join(lib, "d"), filepath.Join(app, "link"))
	h := serve(t, openRoots(t, app, lib), Options{})
	said := h.said("write_file", args{"path": "new/sub/a", "content": "x\n"})
	above := filepath.Join(app, "new") + ", " + filepath.Join(app, "new/sub")
	require.Contains(t, said, "\nalso created: "+above+"\n")
	require.Len(t, h.asked, 1)
	require.Equal(t, "create file "+filepath.Join(app, "new/sub/a")+" and its directories "+above,
		h.asked[0].String())
	h.said("write_file", args{"path": "link/new/a", "content": "x\n"})
	require.Len(t, h.asked[1].Parents, 1)
	require.Equal(t, filepath.Join(lib, "d/new"), h.asked[1].Parents[0].Path())
	require.Equal(t, fileTree{"d/x": "", "d/new/a": "x\n"}, planted(t, lib))
	h.said("write_file", args{"path": strings.Repeat("many/", 16) + "a", "content": "x\n"})

	h.decide = func(Change) error { return errors.New("no") }
	h.refused("write_file", args{"path": "other/sub/a", "content": ""})
	h.refused("create_directory", args{"path": "other/sub"})
	require.NoDirExists(t, filepath.Join(app, "other"))
	asked := len(h.asked)
	for _, path := range []string{"other/../b", "other/b/", "a/b/c", "../x/y/z",
		strings.Repeat("d/", 17) + "f", "other/" + strings.Repeat("n", 300)} {
		h.refused("write_file", args{"path": path, "content": ""})
	}
	require.Len(t, h.asked, asked)
	require.NoDirExists(t, filepath.Join(app, "d"))
}

func TestDirectoryCreatedWhileTheUserIsAsked(t *testing.T) {
	app, h := servePlanted(t, nil)
	h.decide = func(Change) error { return os.MkdirAll(filepath.Join(app, "new"), 0o700) }
	h.said("write_file", args{"path": "new/a", "content": "x\n"})
	require.Equal(t, fileTree{"new/a": "x\n"}, planted(t, app))
}

func TestStaleVersionIsRejected(t *testing.T) {
	app, h := servePlanted(t, fileTree{"a": "one\n"})
	read := h.read(args{"path": "a"}).Version
	h.said("write_file", args{"path": "a", "content": "two\n", "if_version": read})
	var changed *workspace.ChangedError
	require.ErrorAs(t, h.refused("write_file", args{"path": "a", "content": "3\n",
		"if_version": read}), &changed)
	require.ErrorAs(t, h.refused("edit_file", args{"path": "a", "old_text": "two", "new_text": "3",
		"if_version": read}), &changed)
	require.ErrorAs(t, h.refused("write_file", args{"path": "new", "content": "3\n",
		"if_version": read}), &changed)
	h.said("edit_file", args{"path": "a", "old_text": "two", "new_text": "3",
		"if_version": versionOf("two\n")})
	require.Equal(t, fileTree{"a": "3\n"}, planted(t, app))
}

// Clause A30.
func TestNothingChangesWithoutPermission(t *testing.T) {
	app, h := servePlanted(t, fileTree{"a": "one\n"})
	no := errors.New("the user said no")
	h.decide = func(Change) error {
		require.Equal(t, fileTree{"a": "one\n"}, planted(t, app), "nothing is written before")
		return no
	}
	for name, a := range map[string]args{
		"write_file": {"path": "new", "content": "x"}, "edit_file": {"path": "a", "old_text": "one",
			"new_text": "x"},
		"create_directory": {"path": "new"}, "delete_file": {"path": "a"}, "move_file": {"path": "a", "to": "b"},
	} {
		err := h.refused(name, a)
		require.ErrorIs(t, err, no)
		require.ErrorContains(t, err, "nothing was changed")
		require.Equal(t, a["path"], h.asked[len(h.asked)-1].Asked)
	}
	require.Len(t, h.asked, 5)
	require.Equal(t, fileTree{"a": "one\n"}, planted(t, app))
}

// Clause C11.
func TestPermitSeesTheResolvedPathAndItsRoot(t *testing.T) {
	top := plant(t, fileTree{"app/a": "", "lib/b": "one\ntwo\n"})
	lib := filepath.Join(top, "spelled")
	symlink(t, filepath.Join(top, "lib"), lib)
	symlink(t, filepath.Join(top, "lib/b"), filepath.Join(top, "app/link"))
	h := serve(t, openRoots(t, filepath.Join(top, "app"), lib), Options{})
	h.said("edit_file", args{"path": "link", "old_text": "two", "new_text": "2"})
	c := h.asked[0]
	require.Equal(t, "link", c.Asked)
	require.Equal(t, location{filepath.Join(lib, "b"), lib}, locate(c.Ref))
	require.Contains(t, c.Diff(), "-two\n+2\n")
	require.Equal(t, 2, c.FirstLine())
}

// Clause C11.
func TestPathsAreCheckedAgainAfterPermission(t *testing.T) {
	write := func(path string) args { return args{"path": path, "content": "x\n"} }
	at := func(path string) args { return args{"path": path} }
	move := func(from, to string) args { return args{"path": from, "to": to} }
	const path = "l/new/sub/a"
	for _, c := range []struct {
		tool string
		args args
		do   func(t *testing.T, top string)
		want any
	}{
		{"write_file", write("l/a"), relink("lib"), new(*workspace.MovedError)},
		{"write_file", write("l/a"), relink("out"), new(*workspace.OutsideError)},
		{"write_file", write("l/new"), relink("out"), new(*workspace.OutsideError)},
		{"write_file", write("l/a"), rewrite("app/d/a"), new(*workspace.ChangedError)},
		{"write_file", write("l/a"), remove("app/d/a"), new(*workspace.ChangedError)},
		{"write_file", write("l/new"), rewrite("app/d/new"), new(*fs.PathError)},
		{"write_file", write(path), relink("lib"), new(*workspace.MovedError)},
		{"write_file", write(path), relink("out"), new(*workspace.OutsideError)},
		{"write_file", write(path), rewrite("app/d/new"), new(*fs.PathError)},
		{"write_file", write(path), linked("lib"), new(*workspace.MovedError)},
		{"write_file", write(path), linked("out"), new(*workspace.OutsideError)},
		{"create_directory", at(path), relink("lib"), new(*workspace.MovedError)},
		{"create_directory", at(path), relink("out"), new(*workspace.OutsideError)},
		{"create_directory", at(path), rewrite("app/d/new"), new(*fs.PathError)},
		{"create_directory", at(path), linked("lib"), new(*workspace.MovedError)},
		{"create_directory", at(path), linked("out"), new(*workspace.OutsideError)},
		{"create_directory", at("l/new"), relink("lib"), new(*workspace.MovedError)},
		{"create_directory", at("l/new"), relink("out"), new(*workspace.OutsideError)},
		{"create_directory", at("l/new"), rewrite("app/d/new"), new(*fs.PathError)},
		{"delete_file", at("l/a"), relink("lib"), new(*workspace.MovedError)},
		{"delete_file", at("l/a"), relink("out"), new(*workspace.OutsideError)},
		{"delete_file", at("l/a"), rewrite("app/d/a"), new(*workspace.ChangedError)},
		{"delete_file", at("l/a"), remove("app/d/a"), new(*fs.PathError)},
		{"move_file", move("l/a", "new"), relink("lib"), new(*workspace.MovedError)},
		{"move_file", move("l/a", "new"), relink("out"), new(*workspace.OutsideError)},
		{"move_file", move("b", "l/new"), relink("lib"), new(*workspace.MovedError)},
		{"move_file", move("b", "l/new"), relink("out"), new(*workspace.OutsideError)},
		{"move_file", move("b", "l/new"), rewrite("app/d/new"), new(*fs.PathError)},
	} {
		top := plant(t, fileTree{"app/d/a": "one\n", "app/b": "b\n", "lib/a": "one\n",
			"out/a": "one\n"})
		symlink(t, filepath.Join(top, "app/d"), filepath.Join(top, "app/l"))
		h := serve(t, openRoots(t, filepath.Join(top, "app"), filepath.Join(top, "lib")), Options{})
		var then fileTree
		h.decide = func(Change) error {
			c.do(t, top)
			then = planted(t, top)
			return nil
		}
		require.ErrorAs(t, h.refused(c.tool, c.args), c.want, "%s %v", c.tool, c.args)
		require.Equal(t, then, planted(t, top), "%s %v", c.tool, c.args)
		for _, dir := range []string{"lib/new", "lib/sub", "out/new", "out/sub", "app/d/new/sub"} {
			require.NoDirExists(t, filepath.Join(top, dir), "%s %v", c.tool, c.args)
		}
	}
}

func relink(target string) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		require.NoError(t, os.Remove(filepath.Join(top, "app/l")))
		symlink(t, filepath.Join(top, target), filepath.Join(top, "app/l"))
	}
}

func rewrite(path string) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		require.NoError(t, os.WriteFile(filepath.Join(top, path), []byte("two\n"), 0o600))
	}
}

func remove(path string) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		require.NoError(t, os.Remove(filepath.Join(top, path)))
	}
}

// linked returns a step that puts a link in the place of a missing directory.
func linked(target string) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		symlink(t, filepath.Join(top, target), filepath.Join(top, "app/d/new"))
	}
}

// A file that is too large to be shown is replaced by deleting it first.
func TestReplacingLargeFiles(t *testing.T) {
	app := plant(t, fileTree{"large": strings.Repeat("x", 101), "small": "x"})
	h := serve(t, openRoots(t, app), Options{limits: limits{fileSize: 100}})
	require.ErrorContains(t, h.refused("write_file", args{"path": "large", "content": "y"}),
		"To replace it, delete it first")
	require.NotContains(t, h.refused("write_file", args{"path": "small",
		"content": strings.Repeat("y", 101)}).Error(), "delete it")
	h.said("delete_file", args{"path": "large"})
	h.said("write_file", args{"path": "large", "content": "y"})
	written, err := os.ReadFile(filepath.Join(app, "large"))
	require.NoError(t, err)
	require.Equal(t, "y", string(written))
}

// A relative path that begins with the name of a folder is not made in another folder without a
// question.
func TestPathsThatNameAFolder(t *testing.T) {
	top := plant(t, fileTree{"app/main.go": "", "lib/src/a.go": "", "app/tools/x": "", "tools/y": "",
		"other/lib2/z": ""})
	under := func(path string) string { return filepath.Join(top, filepath.FromSlash(path)) }
	h := serve(t, openRoots(t, under("app"), under("lib"), under("tools")), Options{})
	for _, c := range []struct {
		tool string
		args args
		want string
	}{
		{"write_file", args{"path": "lib/new.txt", "content": "x"}, "lib/new.txt"},
		{"write_file", args{"path": "lib/deep/new.txt", "content": "x"}, "lib/deep/new.txt"},
		{"write_file", args{"path": "app/new.txt", "content": "x"}, "app/new.txt"},
		{"create_directory", args{"path": "lib/dir"}, "lib/dir"},
		{"create_directory", args{"path": "lib"}, "lib"},
		{"list_directory", args{"path": "lib"}, "lib"},
		{"list_directory", args{"path": "lib/src"}, "lib/src"},
		{"list_directory", args{"path": "lib/none"}, "lib/none"},
		{"find_files", args{"path": "lib"}, "lib"},
		{"find_files", args{"path": "lib/none", "glob": "*"}, "lib/none"},
		{"search", args{"path": "lib", "pattern": "x"}, "lib"},
		{"read_file", args{"path": "lib/src/a.go"}, "lib/src/a.go"},
		{"edit_file", args{"path": "lib/src/a.go", "old_text": "a", "new_text": "b"}, "lib/src/a.go"},
		{"move_file", args{"path": "main.go", "to": "lib/main.go"}, "lib/main.go"},
	} {
		require.ErrorContains(t, h.refused(c.tool, c.args), "did you mean "+under(c.want)+"?", c)
	}
	require.NoDirExists(t, under("app/lib"))
	h.said("write_file", args{"path": "./lib/new.txt", "content": "x"})
	require.FileExists(t, under("app/lib/new.txt"))
	h.said("write_file", args{"path": "lib/other.txt", "content": "x"})
	require.FileExists(t, under("app/lib/other.txt"), "the folder has a directory of that name now")
	h.said("write_file", args{"path": "tools/new.txt", "content": "x"})
	require.FileExists(t, under("app/tools/new.txt"))
	h.said("write_file", args{"path": under("lib/new.txt"), "content": "x"})
	h.said("write_file", args{"path": "library/new.txt", "content": "x"})
}

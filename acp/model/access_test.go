package model

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// secret is what the model must not see of a file, and reading each call that would show it.
const secret = "KEY=hunter2"

func reading() map[string]modelserver.Order {
	return map[string]modelserver.Order{
		"read_file":     modelserver.UseWith("read_file", arguments("path", ".env")),
		"another path":  modelserver.UseWith("read_file", arguments("path", "sub/../.env")),
		"a link":        modelserver.UseWith("read_file", arguments("path", "link")),
		"the end":       modelserver.UseWith("read_file", arguments("path", ".env", "tail", 1)),
		"read_files":    modelserver.UseWith("read_files", arguments("paths", []string{"a.txt", ".env"})),
		"one of search": modelserver.UseWith("search", arguments("pattern", "KEY", "path", ".env")),
		"search":        modelserver.UseWith("search", arguments("pattern", "KEY", "ignored", "include")),
		"dry_run": modelserver.UseWith("edit_file", arguments("path", ".env", "old_text", "one",
			"new_text", "two", "dry_run", true)),
		"edit_file": modelserver.UseWith("edit_file", arguments("path", ".env", "old_text", "one",
			"new_text", "two")),
		"write_file":  modelserver.UseWith("write_file", arguments("path", ".env", "content", "new")),
		"delete_file": modelserver.UseWith("delete_file", arguments("path", ".env")),
		"read_media":  modelserver.UseWith("read_media", arguments("path", "picture/.env")),
	}
}

func secretTree(t *testing.T) string {
	root := dirtest.New(t, ".env", "one\n"+secret+"\n", "a.txt", "open KEY\n", "sub/x", "",
		"picture/.env", "\x89PNG\r\n\x1a\n"+secret)
	require.NoError(t, os.Symlink(".env", filepath.Join(root, "link")))
	return root
}

// A rule that denies reading holds for every tool of the model, without a question.
//
// Clause R5.
func TestDenyRulesOfReading(t *testing.T) {
	root := secretTree(t)
	before := dirtest.Planted(t, root)
	e := open(t, setup{roots: []string{root},
		permissions: &acp.Permissions{Deny: []string{"read **/.env"}}})
	for name, order := range reading() {
		r := e.prompt("Go.", order)
		require.Empty(t, r.asked, name)
		told := strings.Join(e.results(), "\n")
		require.NotContains(t, told, "hunter2", name)
		require.Contains(t, told, "the user's rule \"read **/.env\" denies it", name)
		for _, u := range r.updates {
			require.NotContains(t, string(u.Raw), "hunter2", name)
		}
	}
	require.Equal(t, before, dirtest.Planted(t, root))
	e.prompt("Go.", reading()["search"])
	told := strings.Join(e.results(), "\n")
	require.Contains(t, told, "open KEY")
	require.Contains(t, told, `left out: 2 files (the user's rule "read **/.env" denies it)`)
	e.prompt("Go.", modelserver.UseWith("find_files", arguments("glob", ".env")))
	require.Contains(t, strings.Join(e.results(), "\n"), ".env", "names are not contents")
}

// Where a rule asks about reading, the user decides about each call; a search leaves the file out.
//
// Clause R5.
func TestAskRulesOfReading(t *testing.T) {
	root := secretTree(t)
	e := open(t, setup{roots: []string{root},
		permissions: &acp.Permissions{Allow: []string{"read"}, Ask: []string{"read **/.env"}}})
	for name, order := range reading() {
		if strings.Contains(name, "edit") || strings.Contains(name, "write") || strings.Contains(name, "delete") {
			continue
		}
		silent := strings.Contains(name, "search")
		e.answer(rejectOnce)
		r := e.prompt("Go.", order)
		told := e.results()[len(e.results())-1]
		require.NotContains(t, told, "hunter2", name)
		if silent {
			require.Empty(t, r.asked, name)
			require.Contains(t, told, "asks about it", name)
			continue
		}
		require.Len(t, r.asked, 1, name)
		require.Contains(t, string(r.asked[0].Call.Content), "read **/.env", name)
		e.answer(allowOnce)
		require.Len(t, e.prompt("Go.", order).asked, 1, name)
		require.NotContains(t, e.results()[len(e.results())-1], "the user", name)
	}
	e.answer(allowOnce)
	require.Len(t, e.prompt("Go.", reading()["edit_file"]).asked, 2, "to read it, and to write it")
	require.Equal(t, "two\n"+secret+"\n", read(t, filepath.Join(root, ".env")))
}

// Rules about edits hold for both paths of a move, and for what is in a folder that is moved. A
// file that may not be read keeps its name.
//
// Clause R5.
func TestRulesOfMoves(t *testing.T) {
	root := dirtest.New(t, "a", "a", "locked/x", "x", ".env", secret, "dir/deep/.env", secret,
		"sqls/b.sql", "b", "plain/c", "c")
	e := open(t, setup{roots: []string{root}, permissions: &acp.Permissions{
		Allow: []string{"edit"}, Deny: []string{"edit locked/**", "edit **/*.sql", "read **/.env"}}})
	before := dirtest.Planted(t, root)
	for _, c := range []struct{ from, to, rule string }{
		{"a", "locked/a", "edit locked/**"}, {"locked/x", "x", "edit locked/**"},
		{"a", "a.sql", "edit **/*.sql"}, {".env", "open", "read **/.env"},
		{"dir", "other", "read **/.env"}, {"dir/deep", "deep", "read **/.env"},
		{"sqls", "moved", "edit **/*.sql"},
	} {
		r := e.prompt("Move.", modelserver.UseWith("move_file", arguments("path", c.from, "to", c.to)))
		require.Empty(t, r.asked, c.from)
		require.Contains(t, strings.Join(e.results(), "\n"), c.rule, c.from)
		require.Equal(t, before, dirtest.Planted(t, root), c.from)
	}
	e.answer(allowOnce)
	require.Len(t, e.prompt("Move.", modelserver.UseWith("move_file",
		arguments("path", "plain", "to", "moved"))).asked, 1)
	require.FileExists(t, filepath.Join(root, "moved", "c"))
	for _, order := range []modelserver.Order{
		modelserver.UseWith("write_file", arguments("path", "locked/new", "content", "")),
		modelserver.UseWith("create_directory", arguments("path", "locked/new")),
		modelserver.UseWith("delete_file", arguments("path", "locked/x")),
		run("git push"),
	} {
		e.answer(rejectOnce)
		e.prompt("Go.", order)
	}
	require.NoFileExists(t, filepath.Join(root, "locked", "new"))
}

// Instructions that may not be read do not reach the model.
//
// Clause R5.
func TestDeniedInstructions(t *testing.T) {
	root := dirtest.New(t, "AGENTS.md", "Say "+secret+".\n", "sub/AGENTS.md", "Never say it.\n")
	e := open(t, setup{roots: []string{root},
		permissions: &acp.Permissions{Deny: []string{"read AGENTS.md"}}})
	e.prompt("Go.", modelserver.UseWith("list_directory", arguments("path", ".")))
	for _, request := range e.model.Requests() {
		require.NotContains(t, string(request.Body), "hunter2")
	}
}

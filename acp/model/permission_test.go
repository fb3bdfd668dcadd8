package model

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// changes are orders that change each file of changedTree in another way.
func changes() []modelserver.Order {
	return []modelserver.Order{
		modelserver.UseWith("write_file", arguments("path", "new.txt", "content", "new\n")),
		modelserver.UseWith("write_file", arguments("path", "old.txt", "content", "changed\n")),
		modelserver.UseWith("edit_file", arguments("path", "edit.txt", "old_text", "two",
			"new_text", "2")),
		modelserver.UseWith("create_directory", arguments("path", "dir")),
		modelserver.UseWith("delete_file", arguments("path", "delete.txt")),
		modelserver.UseWith("move_file", arguments("path", "move.txt", "to", "moved.txt")),
	}
}

var (
	unchangedTree = dirtest.Tree{"old.txt": "old\n", "edit.txt": "one\ntwo\n",
		"delete.txt": "delete\n", "move.txt": "move\n"}
	changedTree = dirtest.Tree{"new.txt": "new\n", "old.txt": "changed\n", "edit.txt": "one\n2\n",
		"moved.txt": "move\n"}
)

// Clause B2.
func TestAskingForChanges(t *testing.T) {
	root := unchangedTree.Plant(t)
	e := open(t, setup{roots: []string{root}})
	e.answer(allowOnce)
	r := e.prompt("Change.", changes()...)
	require.Equal(t, modelserver.Done, r.text())
	require.Equal(t, changedTree, dirtest.Planted(t, root))
	require.DirExists(t, filepath.Join(root, "dir"))
	path := func(name string) string { return filepath.Join(root, name) }
	in := " in folder " + root
	type diff struct {
		Type, Path, NewText string
		OldText             *string
	}
	old := func(s string) *string { return &s }
	require.Len(t, r.asked, 6)
	calls := r.calls()
	require.Len(t, calls, 6)
	for i, want := range []struct {
		title     string
		kind      sdk.ToolKind
		locations []string
		diff      *diff
	}{
		{"Write new.txt" + in, sdk.ToolKindEdit, []string{path("new.txt")},
			&diff{"diff", path("new.txt"), "new\n", nil}},
		{"Write old.txt" + in, sdk.ToolKindEdit, []string{path("old.txt")},
			&diff{"diff", path("old.txt"), "changed\n", old("old\n")}},
		{"Write edit.txt" + in, sdk.ToolKindEdit, []string{path("edit.txt")},
			&diff{"diff", path("edit.txt"), "one\n2\n", old("one\ntwo\n")}},
		{"Create directory dir" + in, sdk.ToolKindEdit, []string{path("dir")}, nil},
		{"Delete file delete.txt" + in, sdk.ToolKindDelete, []string{path("delete.txt")},
			&diff{"diff", path("delete.txt"), "", old("delete\n")}},
		{"Move file move.txt" + in + " to moved.txt", sdk.ToolKindMove,
			[]string{path("move.txt"), path("moved.txt")}, nil},
	} {
		for _, shown := range []update{r.asked[i].Call,
			calls[i]} { // what is asked, and what remains
			require.Equal(t, want.title, shown.Title)
			require.Equal(t, want.kind, shown.Tool)
			var locations []string
			for _, l := range shown.Locations {
				locations = append(locations, l.Path)
			}
			require.Equal(t, want.locations, locations)
			var content []diff
			_ = json.Unmarshal(shown.Content, &content)
			if want.diff != nil {
				require.Equal(t, []diff{*want.diff}, content)
			} else {
				require.Empty(t, content)
			}
		}
		require.Equal(t, calls[i].ID, r.asked[i].Call.ID)
		require.Equal(t, sdk.ToolCallStatusCompleted, calls[i].Status)
		edits := i < 4
		require.Len(t, r.asked[i].Options, map[bool]int{true: 3, false: 2}[edits])
	}
}

// Clause B2.
func TestRejectedChanges(t *testing.T) {
	root := unchangedTree.Plant(t)
	e := open(t, setup{roots: []string{root}})
	e.answer(rejectOnce)
	r := e.prompt("Change.", changes()...)
	require.Equal(t, modelserver.Done, r.text())
	require.Len(t, r.asked, 6)
	require.Equal(t, unchangedTree, dirtest.Planted(t, root))
	for i, call := range r.calls() {
		require.Equal(t, sdk.ToolCallStatusFailed, call.Status)
		require.Contains(t, e.results()[i],
			"the user has rejected it. Do not try to get the same done in another way")
		require.Contains(t, string(call.Content), "You rejected it, so it was not done.")
		require.NotContains(t, string(call.Content), "Do not try", "that is for the model")
	}
}

func TestCancelledPermission(t *testing.T) {
	root := unchangedTree.Plant(t)
	e := open(t, setup{roots: []string{root}})
	e.answer(cancelQuestion)
	r := e.prompt("Change.", modelserver.Together(changes()...))
	require.Equal(t, sdk.StopReasonCancelled, r.stop)
	require.Len(t, r.asked, 1)
	require.Equal(t, unchangedTree, dirtest.Planted(t, root))
	for _, call := range r.calls() {
		require.Equal(t, sdk.ToolCallStatusFailed, call.Status)
	}
	require.Len(t, r.calls(), 6)
	for _, call := range r.calls() {
		require.Contains(t, string(call.Content), "The call did not run")
	}
	e.goOn()
	require.Len(t, e.results(), 6)
	for _, result := range e.results() {
		require.Contains(t, result, "The call did not run")
	}
}

func TestCancelWhileAsking(t *testing.T) {
	root := unchangedTree.Plant(t)
	e := open(t, setup{roots: []string{root}})
	e.decide(func(ctx context.Context, _ question) decision {
		e.cancel()
		<-ctx.Done()
		return allowOnce
	})
	r := e.prompt("Change.", changes()[0])
	require.Equal(t, sdk.StopReasonCancelled, r.stop)
	require.Equal(t, unchangedTree, dirtest.Planted(t, root))
	e.goOn()
}

func TestAcceptEdits(t *testing.T) {
	root := unchangedTree.Plant(t)
	e := open(t, setup{roots: []string{root}})
	e.answer(allowAlways)
	r := e.prompt("Change.", changes()[:4]...)
	require.Equal(t, modelserver.Done, r.text())
	require.Len(t, r.asked, 1)
	mode := r.of("current_mode_update")
	require.Len(t, mode, 1)
	require.Equal(t, string(acceptEdits), mode[0].Mode)
	require.Contains(t, string(r.calls()[1].Content), `"type":"diff"`)

	e.answer(allowOnce)
	r = e.prompt("Change.", changes()[4:]...)
	require.Len(t, r.asked, 2, "files are not deleted or moved without asking")
	require.Equal(t, changedTree, dirtest.Planted(t, root))

	require.Contains(t, string(e.opened), `"currentModeId":"ask"`)
}

// What was accepted was accepted for the roots and the task of that time.
//
// Clause B2.
func TestEditsAreAskedForAgain(t *testing.T) {
	for how, reopen := range map[string]func(e *editor){
		"load": func(e *editor) {
			e.stop()
			e.connect()
			session, err := e.client.LoadSession(t.Context(), e.id, e.lifecycle())
			require.NoError(t, err)
			e.opened = session.Result
		},
		"resume": func(e *editor) {
			session, err := e.client.ResumeSession(t.Context(), e.id, e.lifecycle())
			require.NoError(t, err)
			e.opened = session.Result
		},
		"fork": func(e *editor) {
			session, err := e.client.ForkSession(t.Context(), e.id, e.lifecycle())
			require.NoError(t, err)
			e.id, e.opened = session.ID, session.Result
		},
	} {
		t.Run(how, func(t *testing.T) {
			root := unchangedTree.Plant(t)
			e := open(t, setup{roots: []string{root}})
			e.call("session/set_mode", map[string]any{"modeId": acceptEdits})
			require.Empty(t, e.prompt("Change.", changes()[0]).asked)
			e.take()
			reopen(e)
			require.Contains(t, string(e.opened), `"currentModeId":"ask"`)
			require.Eventually(t, func() bool {
				e.mu.Lock()
				defer e.mu.Unlock()
				var modes []string
				for _, u := range e.updates {
					if u.Kind == "current_mode_update" {
						modes = append(modes, u.Mode)
					}
				}
				return len(modes) > 0 && modes[len(modes)-1] == string(ask)
			}, patience, time.Millisecond)
			e.answer(rejectOnce)
			require.Len(t, e.prompt("Change.", changes()[1]).asked, 1)
		})
	}
}

// A change is stored before it is made, and that it was made before the client learns it.
//
// Clause S11.
func TestChangesAreStoredFirst(t *testing.T) {
	root := unchangedTree.Plant(t)
	e := open(t, setup{roots: []string{root}})
	e.answer(allowOnce)
	shown := 0
	e.watch(func(u update) {
		if u.Status != sdk.ToolCallStatusInProgress && u.Status != sdk.ToolCallStatusCompleted {
			return
		}
		shown++
		stored := false
		for s, err := range e.setup.store.History(t.Context(), sessionstore.ID(e.id)) {
			text := string(s.Raw)
			stored = stored || err == nil && strings.Contains(text, u.ID) &&
				strings.Contains(text, string(u.Status))
		}
		if !stored {
			t.Errorf("%s of %s is not stored", u.Status, u.ID)
		}
	})
	require.Equal(t, modelserver.Done, e.prompt("Change.", changes()...).text())
	require.Equal(t, 12, shown)
}

// asked returns how often the user is asked for a write in the mode "accept edits", and what they
// are told.
func (e *editor) asksFor(path, content string) (asked int, told string) {
	e.t.Helper()
	r := e.prompt("Change.", modelserver.UseWith("write_file",
		arguments("path", path, "content", content)))
	for _, q := range r.asked {
		require.Len(e.t, q.Options, 2, "only this change")
		told += string(q.Call.Content)
	}
	return len(r.asked), told
}

// Agents, editors and git run or follow some files by themselves, so accepting edits does not
// include them.
//
// Clause B2.
func TestFilesThatRunByThemselvesAreAskedFor(t *testing.T) {
	root := dirtest.New(t, "run", "echo\n", "script", "#!/bin/sh\n", "bare/HEAD", "",
		"cafe\u0301.txt", "", "bare/objects/x", "", "bare/refs/x", "", "bare/hooks/x", "", "env/pyvenv.cfg", "",
		"CLAUDE.md", "Read @docs/style.md, @extra.md, @link/more.md and @later/Caf\u00e9.md.\n",
		"docs/style.md", "Be brief.\n", "sub/CLAUDE.md", "@plan.md, @../plans/next.md and @~/plans/home.md\n",
		"sub/deep/AGENTS.md", "Be careful.\n", "sub/deep/CLAUDE.md", "@../../plans/of-claude.md\n",
		".git/config", "[core]\n", "a...b", "", "a/b.txt", "")
	t.Setenv("HOME", root)
	require.NoError(t, os.Chmod(filepath.Join(root, "run"), 0o755))
	require.NoError(t, os.Symlink("docs", filepath.Join(root, "link")))
	require.NoError(t, os.Symlink(".git", filepath.Join(root, "hidden")))
	e := open(t, setup{roots: []string{root}})
	e.call("session/set_mode", map[string]any{"modeId": acceptEdits})
	e.answer(rejectOnce)
	for _, record := range records(t, filepath.Join("testdata", "edits.txt")) {
		for _, line := range record[1:] {
			path, err := strconv.Unquote(`"` + line + `"`)
			require.NoError(t, err)
			asks := record[0] != "-"
			if asks {
				require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o700))
			}
			asked, told := e.asksFor(path, "#![allow(unused)]\n")
			require.Equal(t, asks, asked == 1, path)
			if asks {
				require.Contains(t, told, record[0], path)
			}
		}
	}
	asked, told := e.asksFor("new", "#!/bin/sh\n")
	require.Equal(t, 1, asked)
	require.Contains(t, told, "it is a program")
	require.Len(t, e.prompt("Change.", modelserver.UseWith("create_directory",
		arguments("path", "a/.husky"))).asked, 1)
	require.Equal(t, "[core]\n", read(t, filepath.Join(root, ".git", "config")))
}

// Accepting edits does not include what a file loses.
//
// Clause E2.
func TestLossesAreAskedFor(t *testing.T) {
	root := dirtest.New(t, "a.txt", "one\n")
	require.NoError(t, os.Link(filepath.Join(root, "a.txt"), filepath.Join(root, "b.txt")))
	e := open(t, setup{roots: []string{root}})
	e.call("session/set_mode", map[string]any{"modeId": acceptEdits})
	e.answer(allowOnce)
	r := e.prompt("Change.", modelserver.UseWith("write_file", arguments("path", "a.txt", "content", "2")))
	require.Len(t, r.asked, 1)
	const lost = "has other names (hard links) that keep the old content"
	require.Contains(t, string(r.asked[0].Call.Content), lost)
	require.Contains(t, r.asked[0].Call.Title, ", which "+lost)
	require.Equal(t, "one\n", read(t, filepath.Join(root, "b.txt")))
	asked, _ := e.asksFor("a.txt", "3")
	require.Zero(t, asked, "it has one name now")
}

// A folder that is hidden or a repository itself is no place for accepted edits.
//
// Clause B2.
func TestEditsInHiddenRootsAreAskedFor(t *testing.T) {
	parent := dirtest.New(t, "app/.git/config", "", "app/.git/hooks/x", "", ".config/nvim/x", "",
		"plain.git/x", "", "app/src/x", "")
	require.NoError(t, os.Symlink("app/.git", filepath.Join(parent, "link")))
	for root, want := range map[string]int{
		"app/.git": 1, "app/.git/hooks": 1, ".config/nvim": 1, "plain.git": 1, "link": 1,
		"app/src": 0,
	} {
		e := open(t, setup{roots: []string{filepath.Join(parent, root)}})
		e.call("session/set_mode", map[string]any{"modeId": acceptEdits})
		e.answer(rejectOnce)
		asked, _ := e.asksFor("file", "text\n")
		require.Equal(t, want, asked, root)
	}
}

// Whatever the order in which the parts of a repository are made, one of them asks.
//
// Clause B2.
func TestPlantedRepositoryIsAskedFor(t *testing.T) {
	order := func(kind, name string) modelserver.Order {
		if kind == "dir" {
			return modelserver.UseWith("create_directory", arguments("path", name))
		}
		content := "[core]\nbare = true\nfsmonitor = evil\n"
		return modelserver.UseWith("write_file", arguments("path", name, "content", content))
	}
	parts := [][2]string{{"file", "HEAD"}, {"file", "config"}, {"dir", "objects"}, {"dir", "refs"}}
	for first := range parts {
		for _, inside := range []string{"", "sub/"} {
			e := open(t, setup{roots: []string{dirtest.New(t, "sub/x", "")}})
			e.call("session/set_mode", map[string]any{"modeId": acceptEdits})
			e.answer(allowOnce)
			asked := 0
			for i := range parts {
				part := parts[(first+i)%len(parts)]
				asked += len(e.prompt("Change.", order(part[0], inside+part[1])).asked)
			}
			require.NotZero(t, asked, parts[first])
			e.answer(rejectOnce)
			more, _ := e.asksFor(inside+"config", "[core]\n")
			require.Equal(t, 1, more, "it is a repository now")
		}
	}
}

// Clause B2.
func TestChangesOfModeDuringATurn(t *testing.T) {
	root := unchangedTree.Plant(t)
	e := open(t, setup{roots: []string{root}})
	e.decide(func(context.Context, question) decision {
		e.call("session/set_mode", map[string]any{"modeId": readOnly})
		return allowOnce
	})
	r := e.prompt("Change.", modelserver.Together(changes()[0], changes()[1]))
	require.Len(t, r.asked, 1)
	require.Equal(t, "new\n", read(t, filepath.Join(root, "new.txt")), "what was allowed is made")
	require.Equal(t, "old\n", read(t, filepath.Join(root, "old.txt")))
	require.Contains(t, e.results()[1], "does not allow changes")
}

// A tool that the user allowed for good is not called in a mode that they chose since the model
// asked for it.
//
// Clause B2.
func TestServerToolsAfterAChangeOfMode(t *testing.T) {
	e := open(t, setup{servers: []sdk.McpServer{playedServer("fs")}})
	e.answer(allowAlways)
	long, claim := modelserver.UseWith("fs__long", "{}"), modelserver.UseWith("fs__claim", "{}")
	require.Len(t, e.prompt("Use them.", modelserver.Together(long, claim)).asked, 2)
	e.decide(func(context.Context, question) decision {
		e.call("session/set_mode", map[string]any{"modeId": readOnly})
		return rejectOnce
	})
	r := e.prompt("Use them.", modelserver.Together(changes()[0], long, claim))
	require.Len(t, r.asked, 1)
	require.Len(t, r.calls(), 3)
	results := e.results()[2:]
	require.Contains(t, results[1], "does not allow changes")
	require.Contains(t, results[2], "claimed")
	e.goOn()
}

func TestWhatIsShownIsWhatIsMade(t *testing.T) {
	root := unchangedTree.Plant(t)
	e := open(t, setup{roots: []string{root}})
	e.decide(func(context.Context, question) decision {
		if err := os.WriteFile(filepath.Join(root, "edit.txt"), []byte("one\ntwo\nthree\n"),
			0o600); err != nil {
			t.Error(err)
		}
		return allowOnce
	})
	r := e.prompt("Change.", changes()[2])
	require.Equal(t, sdk.ToolCallStatusCompleted, r.calls()[0].Status)
	require.Contains(t, string(r.calls()[0].Content), `"newText":"one\n2\nthree\n"`)
	require.Equal(t, "one\n2\nthree\n", read(t, filepath.Join(root, "edit.txt")))
}

// A rule of the user denies a change in every mode, and one that says to ask is followed although
// edits are accepted.
//
// Clause R1.
func TestRulesAndModes(t *testing.T) {
	root := dirtest.New(t, "a.txt", "a\n", "b.sql", "b\n", "secrets/key", "k\n")
	e := open(t, setup{roots: []string{root}, permissions: &acp.Permissions{
		Allow: []string{"edit a.txt", "run pwd ..."}, Ask: []string{"edit *.sql"}, Deny: []string{"edit secrets/**", "run touch"},
	}})
	e.answer(rejectOnce)
	write := func(name string) modelserver.Order { return modelserver.Write(filepath.Join(root, name), "new\n") }
	for _, mode := range []string{"ask", "accept_edits"} {
		e.call("session/set_mode", map[string]any{"modeId": mode})
		require.Empty(t, e.prompt("Write.", write("a.txt")).asked)
		require.Len(t, e.prompt("Write.", write("b.sql")).asked, 1)
		require.Empty(t, e.prompt("Write.", write("secrets/key")).asked)
		results := e.results()
		require.Contains(t, results[len(results)-1], `the user's rule "edit secrets/**" denies it`)
		require.Empty(t, e.prompt("Run.", run("pwd; touch x")).asked)
	}
	for name, want := range map[string]string{"a.txt": "new\n", "b.sql": "b\n", "secrets/key": "k\n"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, want, string(content))
	}
	require.NoFileExists(t, filepath.Join(root, "x"))
}

// A path is said once, and none can pass for the words around it.
func TestTitlesOfChanges(t *testing.T) {
	top := dirtest.Tree{"app/a.txt": "a", "my app/b.txt": "b"}.Plant(t)
	app, mine := top+"/app", top+"/my app"
	ws := roottest.Open(t, app, mine)
	for path, want := range map[string]string{
		"a.txt":                         "Write a.txt in folder APP",
		app + "/sub/new.txt":            "Write sub/new.txt in folder APP and its directory APP/sub",
		mine + "/b.txt":                 `Write b.txt in folder "MINE"`,
		app + "/h  in folder /safe.txt": `Write "h  in folder /safe.txt" in folder APP and its directory "APP/h  in folder "`,
		"x, y/new":                      `Write "x, y/new" in folder APP and its directory "APP/x, y"`,
		`"quoted"`:                      `Write "\"quoted\"" in folder APP`,
		"a\u202eb\u202f":                `Write "a\u202eb\u202f" in folder APP`,
	} {
		title := ""
		set := tools.New(ws, tools.Options{Permit: func(_ context.Context, c tools.Change) error {
			title = *describeChange(c).Title
			return errors.New("no")
		}})
		arguments, err := json.Marshal(map[string]string{"path": path, "content": "new"})
		require.NoError(t, err)
		_, _ = set.Call(t.Context(), "write_file", arguments)
		title = strings.NewReplacer(mine, "MINE", app, "APP").Replace(title)
		require.Equal(t, want, title, path)
	}
}

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

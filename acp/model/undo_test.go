package model

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
)

func ordered(tool string, pairs ...any) modelserver.Order {
	return modelserver.UseWith(tool, arguments(pairs...))
}

// The model no longer sees an undone prompt: in the session, after a restart and in a copy. The
// history that is shown keeps it.
//
// Clause B3.
func TestUndo(t *testing.T) {
	e := open(t, setup{})
	require.Contains(t, e.prompt("/undo").text(), "no prompt to undo")
	require.Empty(t, e.model.Requests())

	e.prompt("Prompt one", modelserver.Say("One."))
	e.prompt("Prompt two", modelserver.Say("Two."))
	e.prompt("Prompt three", modelserver.Say("Three."))
	e.prompt("/help")
	r := e.prompt("/undo")
	require.Contains(t, r.text(), "Prompt three")
	require.Empty(t, r.asked)
	require.Contains(t, e.prompt("/undo").text(), "Prompt two", "one more")
	check := func(when string) {
		e.goOn()
		asked := e.last().Text()
		require.Contains(t, asked, "Prompt one", when)
		require.Contains(t, asked, "One.", when)
		for _, gone := range []string{"Prompt two", "Prompt three", "Two.", "Three.", "/undo", "/help"} {
			require.NotContains(t, asked, gone, when)
		}
	}
	check("now")
	replayed := reply{updates: e.restart()}.text()
	require.Contains(t, replayed, "Two.")
	require.Contains(t, replayed, "Three.")
	check("after a restart")
	copied, err := e.client.ForkSession(t.Context(), e.id, e.lifecycle())
	require.NoError(t, err)
	e.id = copied.ID
	check("in a copy")
	for range 4 {
		require.NotContains(t, e.prompt("/undo").text(), "no prompt")
	}
	require.Contains(t, e.prompt("/undo").text(), "no prompt to undo")
	e.restart()
	require.Contains(t, e.prompt("/undo").text(), "no prompt to undo")
	e.prompt("Anew", modelserver.Say("Yes."))
	require.NotContains(t, e.last().Text(), "Prompt one")
}

// A summary that was made since is forgotten too, because it tells what the prompt was about.
//
// Clause B3.
func TestUndoForgetsSummaries(t *testing.T) {
	e := open(t, setup{})
	e.prompt("Prompt one", modelserver.Say("One."))
	e.prompt("Prompt two", modelserver.Say("Two."), modelserver.Say("A summary.").Aside())
	require.Contains(t, e.prompt("/compact").text(), "summary of the conversation")
	e.prompt("/undo")
	for range 2 {
		e.goOn()
		require.Contains(t, e.last().Text(), "Prompt one")
		require.NotContains(t, e.last().Text(), "summary")
		require.NotContains(t, e.last().Text(), "Prompt two")
		e.restart()
	}
}

// Files are restored if the user agrees and they are as the model left them.
//
// Clauses A30, B3.
func TestUndoRestoresFiles(t *testing.T) {
	outside := dirtest.New(t, "kept.txt", "outside\n")
	root := dirtest.New(t, "replaced.txt", "old\n", "edited.txt", "one\ntwo\n",
		"deleted.txt", "precious\n", "moved.txt", "M\n", "touched.txt", "T\n", "linked.txt", "L\n",
		"far.txt", "F\n", "restored.txt", "R\n")
	at := func(name string) string { return filepath.Join(root, name) }
	e := open(t, setup{roots: []string{root}})
	e.answer(allowOnce)
	e.prompt("Do it",
		ordered("write_file", "path", "replaced.txt", "content", "new\n"),
		ordered("write_file", "path", "replaced.txt", "content", "newer\n"),
		ordered("edit_file", "path", "edited.txt", "old_text", "two", "new_text", "2"),
		ordered("write_file", "path", "sub/made.txt", "content", "made\n"),
		ordered("write_file", "path", "brief.txt", "content", "b\n"),
		ordered("delete_file", "path", "brief.txt"),
		ordered("delete_file", "path", "deleted.txt"),
		ordered("edit_file", "path", "moved.txt", "old_text", "M", "new_text", "m"),
		ordered("move_file", "path", "moved.txt", "to", "there.txt"),
		ordered("move_file", "path", "far.txt", "to", "away.txt"),
		ordered("write_file", "path", "touched.txt", "content", "t\n"),
		ordered("write_file", "path", "linked.txt", "content", "l\n"),
		ordered("write_file", "path", "restored.txt", "content", "r\n"),
		modelserver.Run("true"), modelserver.Say("Done."))
	require.Equal(t, "newer\n", read(t, at("replaced.txt")))
	require.Equal(t, "m\n", read(t, at("there.txt")))
	require.NoError(t, os.WriteFile(at("touched.txt"), []byte("mine\n"), 0o600))
	require.NoError(t, os.WriteFile(at("restored.txt"), []byte("R\n"), 0o600))
	require.NoError(t, os.Remove(at("linked.txt")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "kept.txt"), at("linked.txt")))

	r := e.prompt("/undo")
	require.Len(t, r.asked, 1)
	require.Equal(t, "Restore 6 files as before the prompt", r.asked[0].Call.Title)
	said := r.text()
	restored, kept, _ := strings.Cut(said, "Not restored:")
	for name, content := range map[string]string{"replaced.txt": "old\n",
		"edited.txt": "one\ntwo\n", "deleted.txt": "precious\n", "moved.txt": "M\n"} {
		require.Equal(t, content, read(t, at(name)))
		require.Contains(t, restored, name)
	}
	for _, name := range []string{"sub/made.txt", "there.txt"} {
		require.NoFileExists(t, at(name))
		require.Contains(t, restored, name)
	}
	require.NotContains(t, said, "brief.txt")
	require.NotContains(t, said, "restored.txt", "it is as before")
	require.Equal(t, "mine\n", read(t, at("touched.txt")))
	require.Equal(t, "F\n", read(t, at("away.txt")))
	require.Equal(t, "outside\n", read(t, filepath.Join(outside, "kept.txt")))
	require.Regexp(t, `touched\.txt.*: it has changed since`, kept)
	require.Regexp(t, `linked\.txt.*: `, kept)
	require.Regexp(t, `away\.txt.*: it was moved from .*far\.txt`, kept)
	require.Contains(t, said, "Changes made by commands and MCP servers are not undone")
	e.goOn()
	require.NotContains(t, e.last().Text(), "Do it")
}

// Clause B3.
func TestUndoKeepsFilesIfTheUserSaysSo(t *testing.T) {
	for _, answer := range []decision{rejectOnce, cancelQuestion} {
		t.Run(string(answer), func(t *testing.T) {
			root := dirtest.New(t, "a.txt", "old\n")
			e := open(t, setup{roots: []string{root}})
			e.answer(allowOnce)
			e.prompt("Do it", modelserver.Write("a.txt", "new\n"))
			e.answer(answer)
			r := e.prompt("/undo")
			require.Equal(t, "new\n", read(t, filepath.Join(root, "a.txt")))
			e.goOn()
			if answer == cancelQuestion {
				require.Contains(t, e.last().Text(), "Do it", "nothing is undone")
				return
			}
			require.Contains(t, r.text(), "The files were not changed.")
			require.NotContains(t, e.last().Text(), "Do it")
		})
	}
}

// If the program ends after some files were restored, nothing is forgotten, and /undo does the
// rest.
//
// Clause B3.
func TestUndoAgain(t *testing.T) {
	root := dirtest.New(t, "a.txt", "A\n", "b.txt", "B\n")
	store := memstore.New(t)
	e := open(t, setup{roots: []string{root}, store: store})
	e.answer(allowOnce)
	e.prompt("Do it", modelserver.Write("a.txt", "a\n"), modelserver.Write("b.txt", "b\n"),
		modelserver.Write("c.txt", "c\n"))
	e.mu.Lock()
	e.onAsk = func(context.Context, question) decision { // as if it had been killed in between
		require.NoError(t, os.WriteFile(filepath.Join(root, "a.txt"), []byte("A\n"), 0o600))
		return cancelQuestion
	}
	e.mu.Unlock()
	e.prompt("/undo")
	e.restart()
	e.answer(allowOnce)
	r := e.prompt("/undo")
	require.Equal(t, "Restore 2 files as before the prompt", r.asked[0].Call.Title)
	require.Equal(t, "A\n", read(t, filepath.Join(root, "a.txt")))
	require.Equal(t, "B\n", read(t, filepath.Join(root, "b.txt")))
	require.NoFileExists(t, filepath.Join(root, "c.txt"))
}

// A file that changes while the user is asked is kept.
//
// Clause A30.
func TestUndoChecksFilesAgain(t *testing.T) {
	root := dirtest.New(t, "a.txt", "A\n")
	e := open(t, setup{roots: []string{root}})
	e.answer(allowOnce)
	e.prompt("Do it", modelserver.Write("a.txt", "a\n"), modelserver.Write("b.txt", "b\n"))
	e.mu.Lock()
	e.onAsk = func(context.Context, question) decision {
		for _, name := range []string{"a.txt", "b.txt"} {
			require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte("mine\n"), 0o600))
		}
		return allowOnce
	}
	e.mu.Unlock()
	said := e.prompt("/undo").text()
	require.Equal(t, "mine\n", read(t, filepath.Join(root, "a.txt")))
	require.Equal(t, "mine\n", read(t, filepath.Join(root, "b.txt")))
	require.Regexp(t, `a\.txt.*changed since`, said)
	require.Regexp(t, `b\.txt.*changed since`, said)
}

func TestHelp(t *testing.T) {
	root := dirtest.New(t, ".claude/commands/deploy.md", "Deploy it.")
	said := open(t, setup{roots: []string{root}}).prompt("/help").text()
	for _, command := range []string{"/compact", "/undo", "/model", "/help", "/roots", "/mcp",
		"/deploy"} {
		require.Contains(t, said, command)
	}
}

func TestModelCommand(t *testing.T) {
	e := open(t, setup{})
	e.setup.more = []Model{{ID: "other", BaseURL: e.model.URL() + "/v1", Name: "scripted",
		ContextTokens: 1000}}
	e.stop()
	e.connect()
	session, err := e.client.NewSession(t.Context(), client.Setup{Roots: e.lifecycle().Roots})
	require.NoError(t, err)
	e.id = session.ID
	said := e.prompt("/model").text()
	require.Regexp(t, "`local`.*answers now", said)
	require.Contains(t, said, "`other`, called `scripted` by its server\n")
	r := e.prompt("/model none")
	require.Contains(t, r.text(), "There is no model `none`.")
	require.Contains(t, string(r.result), `"failed":true`)
	r = e.prompt("/model other")
	require.Contains(t, r.text(), "The model `other` answers from now on.")
	require.Len(t, r.of("config_option_update"), 1)
	e.restart()
	require.Regexp(t, "`other`.*answers now", e.prompt("/model").text())
}

package model

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

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

// Prompts from before two summaries are not undone.
func TestUndoBeforeSummaries(t *testing.T) {
	e := open(t, setup{})
	e.prompt("Prompt one", modelserver.Say("One."))
	for range 2 {
		e.prompt("Prompt two", modelserver.Say("Two."), modelserver.Say("A summary.").Aside())
		require.Contains(t, e.prompt("/compact").text(), "summary of the conversation")
	}
	e.restart()
	require.Contains(t, e.prompt("/undo").text(), "Prompt two")
	e.goOn()
	require.Contains(t, e.last().Text(), "A summary.")
	require.Contains(t, e.prompt("/undo").text(), "has forgotten")
	require.Contains(t, e.prompt("/undo").text(), "no prompt to undo")
}

// Files stay as the model left them, and the answer says so.
//
// Clause B3.
func TestUndoKeepsFiles(t *testing.T) {
	root := dirtest.New(t, "a.txt", "old\n")
	e := open(t, setup{roots: []string{root}})
	e.answer(allowOnce)
	e.prompt("Do it", modelserver.Write("a.txt", "new\n"), modelserver.Say("Done."))
	r := e.prompt("/undo")
	require.Empty(t, r.asked)
	require.Contains(t, r.text(), "Files were not changed.")
	require.Equal(t, "new\n", read(t, filepath.Join(root, "a.txt")))
	e.goOn()
	require.NotContains(t, e.last().Text(), "Do it")
}

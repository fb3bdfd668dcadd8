package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// What the model is told first says what there is, and stays the same while that changes.
func TestOverview(t *testing.T) {
	root := dirtest.New(t, ".git/HEAD", "ref: refs/heads/feature/x\n", "a.go", "", "sub/b", "",
		"evil\nname", "")
	e := open(t, setup{roots: []string{root, dirtest.New(t)}})
	e.answer(allowOnce)
	e.prompt("Hello.")
	first := e.last().Instructions
	require.Contains(t, first, "You are the model `scripted`.")
	require.Contains(t, first, "sub/; git branch `feature/x`\n- 1: nothing\n")
	require.Contains(t, first, "they run without input")
	require.NotContains(t, first, "\nname")
	e.prompt("Write.", modelserver.Write("new.go", "x"))
	require.Equal(t, first, e.last().Instructions)
}

func TestModelLearnsThatItWasCancelled(t *testing.T) {
	e := open(t, setup{})
	e.cancelAfter(func(u update) bool { return u.Kind == "agent_message_chunk" })
	e.prompt("Say.", modelserver.Say("A longer answer.").In(5).Failing(modelserver.Fault{Events: 3, Then: "silence"}))
	e.restart()
	e.goOn()
	require.Contains(t, e.last().Text(), "Your previous answer was interrupted")
	e.prompt("Go on.")
	users := e.last().Of(modelserver.User)
	require.NotContains(t, users[len(users)-1], "interrupted")
}

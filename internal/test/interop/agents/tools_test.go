package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// rootsTools is the name of the MCP server that serves the other roots to opencode.
const rootsTools = "acp_agent_roots"

// givenToolsForOtherRoots is about opencode, which does not support additional directories, and on
// its own never asks before calling MCP tools.
//
// Clause P1.
func givenToolsForOtherRoots(t *testing.T, s *stage, e *editor) again {
	const text = "Mend what is broken."
	require.NoError(t, os.WriteFile(filepath.Join(s.first, "AGENTS.md"), []byte(text), 0o644))
	outside := folder(t, "banana\n")

	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
	require.NoError(t, err)
	turn := s.prompt(e, made.ID, "Please mend the fruit.",
		modelserver.Read("fruit.txt").By(rootsTools), modelserver.Read(fruit(s.first)).By(rootsTools),
		modelserver.Edit(fruit(s.first), "banana", "cherry").By(rootsTools), modelserver.Read(fruit(outside)).By(rootsTools),
		modelserver.Say("The fruit is mended."))
	require.Contains(t, turn[0].Text(), rootsTools, "the model is told of them")
	require.Contains(t, turn[0].Text(), text, "A25: and of the instructions of the other root")
	results := turn[len(turn)-1].Of(modelserver.Result)
	require.Len(t, results, 4)
	require.Contains(t, results[0], "apple", "A20: relative paths start in cwd")
	require.Contains(t, results[1], "banana")
	require.Equal(t, "cherry\n", content(t, s.first), results[2])
	require.NotContains(t, results[3], "banana", "what is no root is not reached")
	require.Contains(t, e.permissions(), rootsTools+"_edit_file", "A30: it asked before it wrote")
	require.NotContains(t, e.heard(made.ID), onlyForTheAgent, "P7")

	_, err = e.LoadSession(within(t), made.ID, client.Setup{Roots: s.roots(t, s.second)})
	require.NoError(t, err)
	turn = s.prompt(e, made.ID, "And the other one.", modelserver.Read(fruit(s.first)).By(rootsTools),
		modelserver.Read(fruit(s.second)).By(rootsTools), modelserver.Say("Seen."))
	results = turn[len(turn)-1].Of(modelserver.Result)
	require.NotContains(t, results[len(results)-2], "cherry", "A24: the tools follow the roots")
	require.Contains(t, results[len(results)-1], "banana")
	return nil
}

// noToolsForRootsOfOtherSessions is about opencode, which gives the MCP servers of a session to all
// sessions that have its working directory in the same process.
//
// Clause A24.
func noToolsForRootsOfOtherSessions(t *testing.T, s *stage, e *editor) again {
	open := func(additional ...string) string {
		t.Helper()
		made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, additional...)})
		require.NoError(t, err)
		return made.ID
	}
	reads := func(session, folder string) bool {
		t.Helper()
		turn := s.prompt(e, session, "Please look.", modelserver.Read(fruit(folder)).By(rootsTools), modelserver.Say("Seen."))
		return strings.Contains(turn[len(turn)-1].Text(), strings.TrimSpace(content(t, folder)))
	}
	first := open(s.first)
	processes := len(s.processes(t))
	second := open(s.second)
	require.False(t, reads(first, s.second), "those of a later session")
	require.False(t, reads(second, s.first), "those of an earlier session")
	if *survey { // this starts one more process
		require.False(t, reads(open(), s.first), "it has none")
	}
	require.True(t, reads(first, s.first))
	require.True(t, reads(second, s.second))
	more := len(s.processes(t))
	require.Greater(t, more, processes)
	require.NoError(t, e.CloseSession(within(t), second))
	require.Eventually(t, func() bool { return len(s.processes(t)) < more }, patience, 10*time.Millisecond)
	_, err := e.LoadSession(within(t), first, client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(fruit(s.first), []byte("cherry\n"), 0o644))
	require.False(t, reads(first, s.first), "a removed folder")
	return nil
}

package agents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// These agents take folders as arguments of their process. They are only installed for the survey.
func TestRealAgentsWithFolderArguments(t *testing.T) {
	if !*survey {
		t.Skip("make interop-agents runs this")
	}
	t.Parallel()
	for _, s := range []subject{gemini, qwen} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			sharedProcess(t, onStage(t, s))
		})
	}
}

func sharedProcess(t *testing.T, s *stage) {
	setup := client.Setup{Roots: s.roots(t, s.first, s.second)}
	e := s.behind(t, noFiles)
	var ids []string
	var first map[int]string
	for range 3 {
		made, err := e.NewSession(within(t), setup)
		require.NoError(t, err)
		ids = append(ids, made.ID)
		if first == nil {
			first = s.withFolders(t)
			require.NotEmpty(t, first)
		}
	}
	require.Equal(t, first, s.withFolders(t), "sessions with the same folders share a process")
	t.Logf("%d processes for three sessions, and %d in all", len(first), len(s.processes(t)))
	for _, id := range ids {
		turn := s.prompt(e, id, "Please look.", modelserver.Read(fruit(s.second)), modelserver.Say("I have looked."))
		require.Contains(t, turn[len(turn)-1].Text(), "banana")
	}
	id := ids[0]
	s.prompt(e, id, "Please mend the fruit.", modelserver.Read(fruit(s.first)),
		modelserver.Edit(fruit(s.first), "banana", "cherry"), modelserver.Say("The fruit is mended."))
	require.Equal(t, "cherry\n", content(t, s.first))

	t.Run("P7/a session goes on in another process", func(t *testing.T) {
		for pid := range first {
			if process, err := os.FindProcess(pid); err == nil {
				_ = process.Kill()
			}
		}
		require.Eventually(t, func() bool { return len(s.withFolders(t)) == 0 }, patience, 10*time.Millisecond)
		s.ageChats(t)
		_, _ = e.Prompt(within(t), id, sdk.TextBlock("Hello?")) // fails if the program has not noticed yet
		heard := len(e.heard(id))
		turn := s.prompt(e, id, "Are you there?", modelserver.Say("Still here."))
		require.Contains(t, turn[0].Text(), "The fruit is mended.", "it has loaded the conversation")
		require.NotContains(t, turn[0].Text(), onlyForTheAgent, "and was not told of it")
		now := e.heard(id)[heard:]
		require.Contains(t, now, "Still here.")
		require.NotContains(t, now, "The fruit is mended.", "what it replays is not part of the turn")
	})
	if s.subject.name != gemini.name {
		return // it announces its edits
	}
	t.Run("A27/an edit is shown after a load, whether it was allowed or not", func(t *testing.T) {
		e.reject()
		_ = s.prompt(e, id, "And again.", modelserver.Edit(fruit(s.first), "cherry", "damson"), modelserver.Say("Not allowed."))
		require.Equal(t, "cherry\n", content(t, s.first))
		e.leave()
		require.Empty(t, s.processes(t), "W9")
		e := s.behind(t, noFiles)
		_, err := e.LoadSession(within(t), id, setup)
		require.NoError(t, err)
		for _, want := range []string{"cherry", "damson"} {
			require.True(t, showsEdit(e.heard(id), want), "%s: %s", want, e.heard(id))
		}
		require.Equal(t, 1, strings.Count(e.heard(id), `"text":"Still here."`))
	})
}

// ageChats renames the files of Gemini CLI's sessions to those of sessions created earlier. It
// cannot load a session in the minute in which it was created, because it then overwrites the file.
func (s *stage) ageChats(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.home, ".gemini/tmp/*/chats/session-*"))
	require.NoError(t, err)
	minute := regexp.MustCompile(`session-[^-]*-`)
	for _, file := range files {
		require.NoError(t, os.Rename(file, minute.ReplaceAllString(file, "session-2025-")))
	}
}

// showsEdit reports whether updates announce a tool call with a diff that contains text.
func showsEdit(updates, text string) bool {
	for line := range strings.Lines(updates) {
		if strings.Contains(line, `"sessionUpdate":"tool_call",`) && strings.Contains(line, `"diff"`) && strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// withFolders returns the processes that were started with folders.
func (s *stage) withFolders(t *testing.T) map[int]string {
	t.Helper()
	found := s.processes(t)
	for pid, command := range found {
		if !strings.Contains(command, "--include-directories") {
			delete(found, pid)
		}
	}
	return found
}

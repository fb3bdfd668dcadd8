package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// Sessions that an agent has without acp-agent are listed, and open by the agent's own ids too: an
// editor that was used with the agent alone goes on with those that it remembers. They belong to
// the agent, however that is started.
//
// Clause A31.
func TestSessionsThatARealAgentHasAlready(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject
		known string // for --agent
	}{{opencode, "opencode"}, {claude, "claude"}, {gemini, "gemini"}, {pi, "pi"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, c.subject)
			s := onStage(t, c.subject)
			other := s.inNewFolders(t)
			alone := s.alone(t, noFiles)
			listed := begunAlone(t, s, alone)
			known := begunAlone(t, other, alone)
			lists := alone.agent.List
			alone.leave()
			s.ageChats(t)

			e := s.behind(t, noFiles)
			t.Run("A28/unknown", func(t *testing.T) {
				_, err := e.LoadSession(within(t), "unknown", client.Setup{Roots: s.roots(t)})
				require.ErrorContains(t, err, "no session unknown")
			})
			goOn(t, other, e, known)
			require.Equal(t, []string{known}, e.listed(other.query(t, other.first)), "A13")
			if lists {
				var ids []string
				require.Eventually(t, func() bool { // a list waits only so long for an agent that is busy starting
					ids = e.listed(client.Query{Cwd: s.roots(t).Cwd()})
					return len(ids) > 0
				}, patience, 100*time.Millisecond)
				require.Len(t, ids, 1)
				listed = ids[0]
			}
			goOn(t, s, e, listed)
			require.Equal(t, []string{listed}, e.listed(s.query(t, s.first)), "A13")
			e.leave()
			s.ageChats(t)

			named := s.byName(t, noFiles, c.known)
			require.Equal(t, []string{listed}, named.listed(s.query(t, s.first)), "the agent by its name is the same agent")
			require.NoError(t, named.DeleteSession(within(t), listed))
			named.leave()

			e = s.open(t, noFiles, append([]string{program.Path(), "--state-dir", s.state, "--"}, c.other...))
			require.Equal(t, []string{known}, e.listed(client.Query{}), "A28: what was deleted does not come back")
			require.Equal(t, []string{known}, e.listed(other.query(t, other.first)), "and so it is with other flags")
			_, err := e.LoadSession(within(t), known, client.Setup{Roots: other.roots(t)})
			require.NoError(t, err)
			require.Contains(t, e.heard(known), "Since then as well.")
			turn := s.prompt(e, known, "And now?", modelserver.Say("Now as well."))
			require.Contains(t, turn[0].Text(), "Since then as well.")
		})
	}
}

// begunAlone begins a session in the agent alone and returns its id.
func begunAlone(t *testing.T, s *stage, alone *editor) string {
	t.Helper()
	made, err := alone.NewSession(within(t), client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	s.prompt(alone, made.ID, "Before acp-agent.", modelserver.Say("It was long ago."))
	return made.ID
}

// goOn loads a session that was begun alone, and goes on with another folder.
func goOn(t *testing.T, s *stage, e *editor, id string) {
	t.Helper()
	_, err := e.LoadSession(within(t), id, client.Setup{Roots: s.roots(t, s.first)})
	require.NoError(t, err)
	require.Contains(t, e.heard(id), "It was long ago.", "A27")
	turn := s.prompt(e, id, "And since?", modelserver.Say("Since then as well."))
	require.Contains(t, turn[0].Text(), "It was long ago.", "the model is told of the conversation")
	require.Contains(t, turn[0].Text(), s.first, "and of the folders that it has now")
}

// deleteAlone deletes sessions of the agent by its ids, without acp-agent. It reports whether the
// agent can do that.
func (s *stage) deleteAlone(t *testing.T, ids ...string) bool {
	t.Helper()
	alone := s.alone(t, noFiles)
	defer alone.leave()
	for _, id := range ids {
		switch {
		case s.subject.name == opencode.name, s.subject.name == kilo.name:
			program := filepath.Join(s.home, "bin", s.subject.command[0])
			c := exec.CommandContext(t.Context(), program, "session", "delete", id)
			c.Dir, c.Env = s.cwd, append(os.Environ(), s.env...)
			said, err := c.CombinedOutput()
			require.NoError(t, err, string(said))
		case alone.agent.Delete:
			require.NoError(t, alone.DeleteSession(within(t), id))
		case s.subject.name == qwen.name:
			s.removeFiles(t, ".qwen/projects/*/chats", id)
		case s.subject.name == oldClaude.name:
			s.removeFiles(t, ".claude/projects/*", id)
		default:
			return false
		}
	}
	return true
}

// removeFiles removes the files of a session from directories of the home.
func (s *stage) removeFiles(t *testing.T, dirs, id string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.home, dirs, id+"*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		require.NoError(t, os.RemoveAll(file))
	}
}

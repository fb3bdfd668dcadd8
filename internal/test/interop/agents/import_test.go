package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// listsGeneratedTitle is about opencode, which makes a title after the first prompt, and only its
// list has it.
//
// Clause A29.
func listsGeneratedTitle(t *testing.T, s *stage, e *editor) again {
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
	require.NoError(t, err)
	s.prompt(e, made.ID, "Where is the parser?", modelserver.Say("Nowhere."))
	return func(t *testing.T, e *editor) {
		require.Eventually(t, func() bool {
			for listed, err := range e.Sessions(within(t), client.Query{Cwd: s.roots(t).Cwd()}) {
				require.NoError(t, err)
				if listed.ID == made.ID && listed.Title != nil && *listed.Title == modelserver.Title {
					return true
				}
			}
			return false
		}, patience, 200*time.Millisecond)
	}
}

// Turns that pi made without acp-agent follow those on record, although its replay lacks edits.
//
// Clause P7.
func TestReplayContinuesTheRecord(t *testing.T) {
	if !*survey {
		t.Skip("make interop-agents runs this")
	}
	s := onStage(t, pi)
	e := s.behind(t, noFiles)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	s.prompt(e, made.ID, "With acp-agent.", modelserver.Say("First answer."))
	e.leave()

	alone := s.alone(t, noFiles)
	var own string
	for listed, err := range alone.Sessions(within(t), client.Query{}) {
		require.NoError(t, err)
		own = listed.ID
	}
	_, err = alone.LoadSession(within(t), own, client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	s.prompt(alone, own, "Alone.", modelserver.Say("Second answer."))
	alone.leave()

	for range 2 {
		e := s.behind(t, noFiles)
		_, err = e.LoadSession(within(t), made.ID, client.Setup{Roots: s.roots(t)})
		require.NoError(t, err)
		for _, answer := range []string{"First answer.", "Second answer."} {
			require.Equal(t, 1, strings.Count(e.heard(made.ID), `"text":"`+answer), e.heard(made.ID))
		}
		e.leave()
	}
}

// What is deleted in the agent disappears behind acp-agent too. A session that was used there
// stays, marked, and goes on.
//
// Clause A31.
func TestSessionsDeletedInTheAgent(t *testing.T) {
	if !*survey {
		t.Skip("make interop-agents runs this")
	}
	t.Parallel()
	for _, c := range []subject{opencode, claude, pi, qwen} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onStage(t, c)
			alone := s.alone(t, noFiles)
			var own []string
			for _, name := range []string{"kept", "used", "deleted"} {
				made, err := alone.NewSession(within(t), client.Setup{Roots: s.roots(t)})
				require.NoError(t, err)
				s.prompt(alone, made.ID, "Before, "+name+".", modelserver.Say("It was long ago."))
				own = append(own, made.ID)
			}
			alone.leave()

			e := s.behind(t, noFiles)
			here := client.Query{Cwd: s.roots(t).Cwd()}
			require.Eventually(t, func() bool { return len(e.listed(here)) == 3 }, patience,
				100*time.Millisecond)
			_, err := e.LoadSession(within(t), own[1], client.Setup{Roots: s.roots(t)})
			require.NoError(t, err)
			s.prompt(e, own[1], "And since?", modelserver.Say("Since then as well."))
			e.leave()
			require.True(t, s.deleteAlone(t, own[1], own[2]))

			e = s.behind(t, noFiles)
			var marked string
			require.Eventually(t, func() bool {
				titles := map[string]string{}
				for s, err := range e.Sessions(within(t), here) {
					require.NoError(t, err)
					titles[s.ID] = ""
					if s.Title != nil && strings.HasPrefix(*s.Title, "[deleted in the agent] ") {
						marked, titles[s.ID] = s.ID, *s.Title
					}
				}
				return len(titles) == 2 && titles[marked] != ""
			}, patience, 100*time.Millisecond)
			_, err = e.LoadSession(within(t), marked, client.Setup{Roots: s.roots(t)})
			require.NoError(t, err)
			require.Contains(t, e.heard(marked), "Since then as well.")
			turn := s.prompt(e, marked, "And now?", modelserver.Say("Now as well."))
			require.Contains(t, turn[0].Text(), "Since then as well.")
			require.Contains(t, e.heard(marked), "does not open its own session")
			e.leave()

			e = s.behind(t, noFiles)
			require.Len(t, e.listed(here), 2)
			for s, err := range e.Sessions(within(t), here) {
				require.NoError(t, err)
				require.NotContains(t, *s.Title, "deleted")
			}
		})
	}
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

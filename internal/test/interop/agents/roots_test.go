package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// toldOfNewRoots is about a session that stays active.
//
// Clauses A12, P1, P3.
func toldOfNewRoots(t *testing.T, s *stage, e *editor) again {
	loaded, resumed := narrowing(t, s, e)
	if s.subject.name == opencode.name { // it is told in words
		require.Contains(t, lastBlock(t, loaded), s.second)
		require.NotContains(t, lastBlock(t, loaded), s.first)
		require.NotContains(t, lastBlock(t, resumed), s.second)
	} else { // by the full list
		require.Contains(t, lastRemoval(t, loaded), s.first)
		require.NotContains(t, lastRemoval(t, loaded), s.second)
		require.Contains(t, lastRemoval(t, resumed), s.second)
	}
	return nil
}

// Clause A25.
func toldOfOtherRoots(t *testing.T, s *stage, e *editor) again {
	const words, rule = "Please look at the fruit.", "Bananas are to be peeled."
	require.NoError(t, os.WriteFile(filepath.Join(s.first, "AGENTS.md"), []byte(rule), 0o644))
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
	require.NoError(t, err)
	told := s.prompt(e, made.ID, words, modelserver.Say("It is a banana."))[0]
	require.Contains(t, told.Instructions, rule)
	require.NotContains(t, strings.Join(told.Of(modelserver.User), "\n"), onlyForTheAgent,
		"P7: its history is the user's conversation")
	const other = "Bananas are to be boiled."
	require.NoError(t, os.WriteFile(filepath.Join(s.second, "AGENTS.md"), []byte(other), 0o644))
	_, err = e.LoadSession(within(t), made.ID, client.Setup{Roots: s.roots(t, s.second)})
	require.NoError(t, err)
	require.NotContains(t, e.heard(made.ID), onlyForTheAgent, "P7")
	told = s.prompt(e, made.ID, "And now?", modelserver.Say("There is none."))[0]
	require.Contains(t, lastBlock(t, told), other, "Claude Code keeps the system prompt that the session began with")
	require.NotContains(t, lastBlock(t, told), rule)
	for session, err := range e.Sessions(within(t), client.Query{}) {
		require.NoError(t, err)
		require.NotContains(t, *session.Title, onlyForTheAgent)
	}
	return nil
}

// skill returns the SKILL.md of a skill in any directory.
func skill(name string) string {
	return "---\nname: " + name + "\ndescription: Peels with " + name + ".\n---\nTurn it slowly.\n"
}

// place creates files in a folder, from pairs of path and text.
func place(t *testing.T, folder string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(folder, files[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(files[i+1]), 0o644))
	}
}

// Clause D1.
func knowsSkillsAndInstructions(t *testing.T, s *stage, e *editor) again {
	place(t, s.cwd, "AGENTS.md", "Apples are red.", ".claude/CLAUDE.md", "Unripe.",
		".agents/skills/knife/SKILL.md", skill("knife"), ".claude/skills/spoon/SKILL.md", skill("spoon"))
	place(t, s.first, "AGENTS.md", "Bananas are yellow.",
		".agents/skills/fork/SKILL.md", skill("fork"), ".claude/skills/tongs/SKILL.md", skill("tongs"))
	place(t, s.second, "CLAUDE.md", "Cherries are black.", "skills/whisk/SKILL.md", skill("whisk"))
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first, s.second)})
	require.NoError(t, err)
	told := s.prompt(e, made.ID, "Please peel it.", modelserver.Say("Peeled."))[0].Text()
	for _, once := range []string{"Apples are red.", "Bananas are yellow.", "Cherries are black.",
		"Peels with knife.", "Peels with spoon.", "Peels with fork.", "Peels with tongs.", "Peels with whisk."} {
		require.Equal(t, 1, strings.Count(told, once), "D3: %s", once)
	}
	told = strings.ReplaceAll(told, "\n    ", "\n") // opencode indents the instructions of MCP servers
	for _, listed := range []string{
		"## Folder 1, " + s.first + "\n", "In .agents/skills:\n\n- fork: Peels with fork.",
		"## Folder 2, " + s.second + "\n", "In skills:\n\n- whisk: Peels with whisk.",
	} {
		_, after, found := strings.Cut(told, listed)
		require.True(t, found, "%q is not in %q, in this order", listed, told)
		told = after
	}
	return nil
}

// knowsInstructionsInCommand begins a session with a command of the agent's own.
//
// Clause D1.
func knowsInstructionsInCommand(t *testing.T, s *stage, e *editor) again {
	const rule = "Bananas are yellow."
	place(t, s.first, "AGENTS.md", rule)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
	require.NoError(t, err)
	told := s.prompt(e, made.ID, "/peel slowly", modelserver.Say("Peeled."))[0].Text()
	require.Contains(t, told, "Take a knife. slowly", "the agent has recognized its command")
	require.Equal(t, 1, strings.Count(told, rule))
	told = s.prompt(e, made.ID, "Again.", modelserver.Say("Peeled."))[0].Text()
	require.Equal(t, 1, strings.Count(told, rule), "D3")
	require.NotContains(t, e.heard(made.ID), rule, "P7")
	return nil
}

// placeCommand gives the agent a command "peel" of its own.
func (s *stage) placeCommand(t *testing.T) {
	t.Helper()
	dir := map[string]string{opencode.name: ".config/opencode/command", claude.name: ".claude/commands"}[s.subject.name]
	place(t, s.home, dir+"/peel.md", "---\ndescription: Peels.\n---\nTake a knife. $ARGUMENTS")
}

// narrowing removes a session's roots, one by a load and one by a resume, and returns the first
// request to the model after each.
func narrowing(t *testing.T, s *stage, e *editor) (loaded, resumed modelserver.Request) {
	t.Helper()
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first, s.second)})
	require.NoError(t, err)
	s.prompt(e, made.ID, "Begin.", modelserver.Say("Begun."))
	_, err = e.LoadSession(within(t), made.ID, client.Setup{Roots: s.roots(t, s.second)})
	require.NoError(t, err)
	loaded = s.prompt(e, made.ID, "Go on.", modelserver.Say("Gone on."))[0]
	_, err = e.ResumeSession(within(t), made.ID, client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	resumed = s.prompt(e, made.ID, "And on.", modelserver.Say("Gone on."))[0]
	return loaded, resumed
}

// lastBlock returns the last text that acp-agent sent only to the agent: in the conversation, or in
// the system prompt.
func lastBlock(t *testing.T, r modelserver.Request) string {
	t.Helper()
	blocks := strings.Split(strings.Join(r.Of(modelserver.User), "\n"), "<"+onlyForTheAgent)
	if len(blocks) == 1 {
		_, told, found := strings.Cut(r.Instructions, "acp-agent, which connects you")
		require.True(t, found, r.Text())
		return told
	}
	last, _, closed := strings.Cut(blocks[len(blocks)-1], "</"+onlyForTheAgent)
	require.True(t, closed)
	return last
}

// lastRemoval returns the directories that Claude Code last reported to its model as removed.
func lastRemoval(t *testing.T, r modelserver.Request) string {
	t.Helper()
	at := strings.LastIndex(r.Instructions, "Additional working directories removed:")
	require.GreaterOrEqual(t, at, 0, r.Instructions)
	return r.Instructions[at:]
}

// What is in the folders is not part of the conversation of an agent that takes it in its system
// prompt, also after a load in another process, which starts our MCP server anew.
//
// Clause P6.
func TestContextIsInTheSystemPrompt(t *testing.T) {
	t.Parallel()
	for _, c := range []subject{opencode, claude, codex, goose, kilo} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, c)
			s := onStage(t, c)
			place(t, s.first, "AGENTS.md", "Heed the whole banana.")
			setup := client.Setup{Roots: s.roots(t, s.first)}
			e := s.behind(t, noFiles)
			made, err := e.NewSession(within(t), setup)
			require.NoError(t, err)
			look := func(e *editor) {
				t.Helper()
				turn := s.prompt(e, made.ID, asked, modelserver.Say(answered))
				require.Equal(t, 1, strings.Count(turn[0].Text(), "Heed the whole banana."))
				require.Contains(t, turn[0].Instructions, "Heed the whole banana.")
				require.Contains(t, turn[0].Text(), s.first)
				require.NotContains(t, strings.Join(turn[0].Of(modelserver.User), "\n"), onlyForTheAgent)
			}
			look(e)
			look(e)
			e.leave()
			e = s.behind(t, noFiles)
			_, err = e.LoadSession(within(t), made.ID, setup)
			require.NoError(t, err)
			look(e)
		})
	}
}

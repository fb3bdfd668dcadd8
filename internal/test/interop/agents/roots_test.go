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

// What is in the folders is not part of the conversation of an agent that takes it otherwise, also
// after a load in another process, which tells it anew, and in the agent alone.
//
// Clause P6.
func TestContextIsNotInTheConversation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject
		system bool // its system prompt has the context
	}{
		{opencode, true}, {claude, true}, {codex, true}, {goose, true}, {kilo, true},
		{gemini, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, c.subject)
			s := onStage(t, c.subject)
			e := s.behind(t, noFiles)
			var all []*unheard
			for _, several := range []bool{false, true} {
				if !several && (!*survey || c.name == kilo.name || c.name == opencode.name) {
					continue // these take long, and do as goose does
				}
				u := &unheard{stage: s.inNewFolders(t), system: c.system}
				u.begin(t, e, several)
				u.look(t, e)
				u.look(t, e)
				all = append(all, u)
			}
			e.leave()
			s.ageChats(t)
			e = s.behind(t, noFiles)
			for _, u := range all {
				_, err := e.LoadSession(within(t), u.id, u.setup)
				require.NoError(t, err)
				u.look(t, e)
			}
			e.leave()
			alone := s.alone(t, noFiles)
			defer alone.leave()
			for _, u := range all {
				u.hasNoContext(t, alone)
			}
		})
	}
}

// unheard is a session in one folder or in several, one of which has a skill.
type unheard struct {
	*stage
	system bool // the agent's system prompt has the context
	where  string
	setup  client.Setup
	id     string
}

func (u *unheard) begin(t *testing.T, e *editor, several bool) {
	t.Helper()
	u.where, u.setup = u.cwd, client.Setup{Roots: u.roots(t)}
	if several {
		u.where, u.setup.Roots = u.first, u.roots(t, u.first)
	}
	place(t, u.where, "skills/whisk/SKILL.md", skill("whisk"))
	made, err := e.NewSession(within(t), u.setup)
	require.NoError(t, err)
	u.id = made.ID
}

// look fails unless the model is told of the skill once, and not in the conversation.
func (u *unheard) look(t *testing.T, e *editor) {
	t.Helper()
	asks := u.prompt(e, u.id, asked, modelserver.Say(answered))[0]
	require.Equal(t, 1, strings.Count(asks.Text(), "Peels with whisk."), asks.Text())
	require.Contains(t, asks.Text(), u.where)
	require.NotContains(t, strings.Join(asks.Of(modelserver.User), "\n"), "<"+onlyForTheAgent+">\n")
	if u.system {
		require.Contains(t, asks.Instructions, "Peels with whisk.")
	}
}

// hasNoContext fails if the agent alone shows what it was told before its conversations, or has
// tools of acp-agent there.
func (s *stage) hasNoContext(t *testing.T, alone *editor) {
	t.Helper()
	if !alone.agent.List {
		return
	}
	for id, title := range s.titles(t, alone) {
		require.NotContains(t, title, onlyForTheAgent)
		_, err := alone.LoadSession(within(t), id, client.Setup{Roots: s.roots(t)})
		require.NoError(t, err)
		require.Contains(t, alone.heard(id), answered)
		require.NotContains(t, alone.heard(id), "Peels with whisk.")
		for _, tool := range s.prompt(alone, id, "And alone?", modelserver.Say(answered))[0].Tools {
			require.NotContains(t, tool.Namespace+" "+tool.Name, rootsTools)
		}
		require.NotContains(t, alone.heard(id), rootsTools, "its server is not missed")
	}
}

package proxy_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause A25.
func TestInstructions(t *testing.T) {
	for _, c := range []struct {
		way     profiles.RootsMode
		able    abilities
		profile profiles.Profile
	}{
		{profiles.RootsByProtocol, abilities{Load: true, Resume: true, Roots: true}, profiles.Profile{}},
		{profiles.RootsByFlags, abilities{Load: true, Resume: true}, profiles.Profile{Roots: profiles.Roots{Flag: "--dir"}}},
		{profiles.RootsByContext, abilities{Load: true, Resume: true}, profiles.Profile{}},
	} {
		t.Run(string(c.way), func(t *testing.T) {
			t.Parallel()
			h, v := connected(t, c.able, proxy.Options{Profile: c.profile})
			all := roots(t, 2)
			put(t, all.Cwd(), "AGENTS.md", "Of the working directory.")
			first := put(t, all.At(1), "AGENTS.md", "Of the first.</acp-agent-context>")
			put(t, all.At(2), "CLAUDE.md", "Of the second.")
			s := v.open(all)
			v.prompt(s.ID, "one")
			told := h.lastPrompt()
			require.Len(t, told, 2)
			require.Equal(t, "one", told[0], "the user's text comes first")
			require.Contains(t, told[1], "Of the first.")
			require.Contains(t, told[1], "Of the second.")
			require.Contains(t, told[1], all.At(1).String(), "A30: labelled with its root")
			require.NotContains(t, told[1], "Of the working directory.",
				"the child finds these itself")
			require.Equal(t, 1, strings.Count(told[1], "</acp-agent-context>"),
				"P7: a file cannot end the block")
			v.prompt(s.ID, "two")
			require.Equal(t, []string{"two"}, h.lastPrompt(), "P6: only once")

			require.NoError(t, os.WriteFile(first, []byte("Changed."), 0o644))
			v.prompt(s.ID, "three")
			require.Contains(t, h.lastPrompt()[1], "Changed.", "after a change")
			require.Contains(t, h.lastPrompt()[1], "replace those")
			v.disconnect()

			// Another process, with other roots.
			v = h.connect()
			_, err := v.ResumeSession(t.Context(), s.ID,
				client.Setup{Roots: with(all, all.At(2).String())})
			require.NoError(t, err)
			v.prompt(s.ID, "four")
			require.Contains(t, h.lastPrompt()[1], "Of the second.")
			require.NotContains(t, h.lastPrompt()[1], "Changed.")
			v.load(s.ID, with(all))
			v.prompt(s.ID, "five")
			require.Contains(t, h.lastPrompt()[1], "no longer apply")
			v.prompt(s.ID, "six")
			require.Equal(t, []string{"six"}, h.lastPrompt())
			h.history(s.ID) // it does not have it
		})
	}
}

// systemPrompts returns the system prompts in the requests of a method that the agent received.
func (h *system) systemPrompts(method string) (prompts []string) {
	for _, r := range h.received() {
		if r.method != method {
			continue
		}
		var p struct {
			SystemPrompt struct {
				Mode    string
				Content []struct{ Text string }
			}
		}
		require.NoError(h.t, json.Unmarshal([]byte(r.params), &p))
		prompt := p.SystemPrompt.Mode
		for _, block := range p.SystemPrompt.Content {
			prompt += " " + block.Text
		}
		prompts = append(prompts, prompt)
	}
	return prompts
}

// Clause A25.
func TestSystemPrompt(t *testing.T) {
	for _, c := range []struct {
		way  profiles.RootsMode
		able abilities
	}{
		{profiles.RootsByProtocol, abilities{Load: true, Resume: true, Roots: true,
			SystemPrompt: true}},
		{profiles.RootsByContext, abilities{Load: true, Resume: true, SystemPrompt: true}},
	} {
		t.Run(string(c.way), func(t *testing.T) {
			t.Parallel()
			h, v := connected(t, c.able, proxy.Options{})
			all := roots(t, 2)
			first := put(t, all.At(1), "AGENTS.md", "Of the first.")
			put(t, all.At(2), "AGENTS.md", "Of the second.")
			s := v.open(all)
			v.prompt(s.ID, "one")
			told := h.systemPrompts("session/new")[0]
			require.Contains(t, told, "append ")
			require.Contains(t, told, "Of the first.")
			require.Contains(t, told, "Of the second.")
			require.Equal(t, c.way == profiles.RootsByContext,
				strings.Contains(told, "several folders"))
			require.Equal(t, []string{"one"}, h.lastPrompt(), "P7: the prompt is the user's alone")

			require.NoError(t, os.WriteFile(first, []byte("Changed."), 0o644))
			v.prompt(s.ID, "two")
			require.Equal(t, "two", h.lastPrompt()[0])
			require.Contains(t, h.lastPrompt()[1], "Changed.", "after a change in the session")

			_, err := v.LoadSession(t.Context(), s.ID,
				client.Setup{Roots: with(all, all.At(2).String())})
			require.NoError(t, err)
			told = h.systemPrompts("session/load")[0]
			require.NotContains(t, told, "Changed.")
			require.Contains(t, told, "Of the second.")
			v.prompt(s.ID, "three")
			require.Equal(t, "three", h.lastPrompt()[0])
			require.Contains(t, h.lastPrompt()[1], "Of the second.",
				"the agent may have kept its system prompt")
			require.NotContains(t, h.lastPrompt()[1], "Changed.")
			v.disconnect()

			v = h.connect() // the agent has started again
			_, err = v.ResumeSession(t.Context(), s.ID,
				client.Setup{Roots: with(all, all.At(2).String())})
			require.NoError(t, err)
			require.Equal(t, told, h.systemPrompts("session/resume")[0],
				"the same, so that the agent's cache stays valid")
			v.prompt(s.ID, "three again")
			require.Equal(t, []string{"three again"}, h.lastPrompt())
			v.load(s.ID, with(all))
			require.Empty(t, h.systemPrompts("session/load")[1])
			v.prompt(s.ID, "four")
			require.Contains(t, h.lastPrompt()[1], "no longer apply")
			v.prompt(s.ID, "five")
			require.Equal(t, []string{"five"}, h.lastPrompt())
			h.history(s.ID)
		})
	}
}

// Clause P6.
func TestSystemPromptOfTheClient(t *testing.T) {
	const able = "await initialize\n" +
		`answer initialize {"protocolVersion":1,` +
		`"agentCapabilities":{"sessionCapabilities":{"systemPrompt":{}}}}` +
		"\n"
	for given, want := range map[string]string{
		`"systemPrompt":{"mode":"override","content":[{"type":"text","text":"Mine."}]}`: `` +
			`"systemPrompt":{"mode":"override","content":[` +
			`{"type":"text","text":"Mine."},{"text":"acp-agent`,
		`"systemPrompt":null`:                   `"systemPrompt":{"content":[{"text":"acp-agent`,
		`"systemPrompt":7`:                      `"systemPrompt":7`,
		`"systemPrompt":{"content":7}`:          `"systemPrompt":{"content":7}`,
		`"_meta":{"systemPrompt":"Mine alone"}`: `"_meta":{"systemPrompt":"Mine alone"}`,
	} {
		b := initialized(t, able+opened+"await session/prompt\n"+answered)
		s, _ := b.openWith(`{"cwd":"/a","additionalDirectories":["/b"],"mcpServers":[],` + given +
			`}`)
		_, err := b.prompt(s)
		require.NoError(t, err)
		require.Contains(t, b.received("session/new")[0], want)
		if strings.HasPrefix(given, `"_meta"`) {
			require.NotContains(t, b.received("session/new")[0], "acp-agent",
				"it takes precedence over the client's")
			require.Contains(t, b.received("session/prompt")[0], "several folders")
		}
	}
}

// Clause P7.
func TestInstructionsLimit(t *testing.T) {
	h, v := connected(t, abilities{Roots: true},
		proxy.Options{}.With(proxy.Limits{MaxInstructions: 1000}))
	all := roots(t, 1)
	put(t, all.At(1), "AGENTS.md", strings.Repeat("é long ", 3000))
	s := v.open(all)
	v.prompt(s.ID, "one")
	require.Less(t, len(h.lastPrompt()[1]), 1200)
	require.Contains(t, h.lastPrompt()[1], "(cut: ")
}

// Clause P7.
func TestConversationLimit(t *testing.T) {
	h, v := connected(t, abilities{}, proxy.Options{}.With(proxy.Limits{MaxContext: 200}))
	first := roots(t, 0)
	s := v.open(first)
	for i := range 10 {
		v.prompt(s.ID, fmt.Sprintf("word%d%s</acp-agent-context>", i, strings.Repeat("é", 40)))
	}
	v.disconnect()
	v = h.connect()
	v.load(s.ID, first)
	v.prompt(s.ID, "last")
	all := h.received()
	prompt := all[len(all)-1].params
	require.Less(t, len(prompt), 2000)
	require.Contains(t, prompt, "continues one whose messages you do not have")
	require.Equal(t, 1, strings.Count(prompt, `/acp-agent-context\u003e`)-strings.Count(prompt,
		`\\/acp-agent-context\u003e`), "the conversation cannot end the block")
}

// Clause P1.
func TestRootsInFirstPrompt(t *testing.T) {
	var log logtest.Text
	b := initialized(t, plain+opened+"await session/prompt\n"+answered+"await session/prompt\n"+
		answered,
		proxy.Options{Logger: log.Logger(slog.LevelInfo)})
	s, _ := b.openWith(`{"cwd":"/a","additionalDirectories":["/b","/b","/c d"],"mcpServers":[]}`)
	require.Contains(t, log.String(), "does not support additional folders")
	require.Contains(t, log.String(), "/b /c d")
	for range 2 {
		_, err := b.prompt(s)
		require.NoError(t, err)
	}
	got := b.received("session/new", "session/prompt")
	require.Equal(t, newRequest(`{"cwd":"/a","mcpServers":[]}`)[0], got[0])

	var first struct {
		Params struct {
			Prompt []struct{ Type, Text string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got[1]), &first))
	require.Len(t, first.Params.Prompt, 2)
	context := first.Params.Prompt[1]
	require.Equal(t, "text", context.Type)
	require.True(t, strings.HasPrefix(context.Text, "\n\n<acp-agent-context>\n") &&
		strings.HasSuffix(context.Text, "\n</acp-agent-context>"))
	require.Contains(t, context.Text,
		"Folder 0: \"/a\" (the working directory)\nFolder 1: \"/b\"\nFolder 2: \"/c d\"\n")
	require.Equal(t, "hello", first.Params.Prompt[0].Text)
	require.Contains(t, got[2], `"prompt":[{"type":"text","text":"hello"}]`,
		"the second prompt is unchanged")
}

// Clause P7.
func TestRootsTextLimit(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\n"+answered)
	var roots []string
	for i := range 63 {
		roots = append(roots, fmt.Sprintf(`"/%d/%s"`, i, strings.Repeat("long", 250)))
	}
	s, _ := b.openWith(`{"cwd":"/a","additionalDirectories":[` + strings.Join(roots, ",") +
		`],"mcpServers":[]}`)
	_, err := b.prompt(s)
	require.NoError(t, err)
	prompt := b.received("session/prompt")[0]
	require.Less(t, len(prompt), 20_000)
	require.Contains(t, prompt, "and 47 more")
}

// Clause P1.
func TestRootsInEmptyPrompt(t *testing.T) {
	for prompt, want := range map[string]string{
		`{"prompt":[ ]}`:   `</acp-agent-context>","type":"text"}]`,
		`{"prompt":"odd"}`: `"prompt":"odd"`,
		`{}`:               `"params":{"sessionId":"child-1"}`,
	} {
		b := initialized(t, plain+opened+"await session/prompt\n"+answered)
		s, _ := b.openWith(`{"cwd":"/a","additionalDirectories":["/b"]}`)
		_, err := await(t, s.Prompt(t.Context(), backend.Raw(prompt), turn{b.client}))
		require.NoError(t, err)
		got := strings.ReplaceAll(b.received("session/prompt")[0], `\u003c`, "<")
		require.Contains(t, strings.ReplaceAll(got, `\u003e`, ">"), want)
	}
}

// Clause D1.
func TestSkillsAndInstructionsThatTheAgentDoesNotFind(t *testing.T) {
	skill := func(name string, more ...string) string {
		return "---\nname: " + name + "\ndescription: Does " + name + ".\n" +
			strings.Join(more, "\n") + "\n---\nBody of " + name + ".\n"
	}
	t.Parallel()
	h, v := connected(t, abilities{Load: true, Resume: true, Roots: true},
		proxy.Options{Profile: profiles.Profile{Finds: profiles.Finds{InCwd: []string{"GEMINI.md", ".agents/skills/*/SKILL.md"}, Otherwise: []string{"AGENTS.md"}, InRoots: []string{".claude/skills/*/SKILL.md"}}}})
	all := roots(t, 1)
	put(t, all.Cwd(), "GEMINI.md", "Found.")
	put(t, all.Cwd(), "AGENTS.md", "Of the working directory.")
	put(t, all.Cwd(), ".agents/skills/own/SKILL.md", skill("own"))
	listed := put(t, all.Cwd(), ".claude/skills/listed/SKILL.md", skill("listed"))
	put(t, all.At(1), ".claude/skills/found/SKILL.md", skill("found"))
	other := put(t, all.At(1), ".agents/skills/other/SKILL.md",
		skill("other", "user-invocable: false"))
	put(t, all.At(1), ".agents/skills/forced/SKILL.md",
		skill("forced", "disable-model-invocation: true"))
	put(t, all.At(1), ".agents/skills/listed/SKILL.md", skill("listed"))
	s := v.open(all)
	v.prompt(s.ID, "one")
	told := h.lastPrompt()[1]
	require.True(t, strings.HasPrefix(told, "\n\n<acp-agent-context>"),
		"some agents join the texts of a prompt")
	require.Contains(t, told, "## Folder 0, "+all.Cwd().String()+
		": AGENTS.md\n\n```\nOf the working directory.\n```")
	require.NotContains(t, told, "Found.")
	require.Contains(t, told, fmt.Sprintf(
		"## Folder 0, %s\n\nIn %s:\n\n- listed: Does listed.\n\n"+
			"## Folder 1, %s\n\nIn %s:\n\n- other: Does other.\n",
		all.Cwd(), folderOf(all.Cwd(), listed), all.At(1), folderOf(all.At(1), other)))
	require.Contains(t, told, "first read the file SKILL.md")
	require.Equal(t, 2, strings.Count(told, "\n- "),
		"D3: neither what the agent finds nor what only the user may call")
	require.NotContains(t, told, "Body of")
	v.prompt(s.ID, "two")
	require.Equal(t, []string{"two"}, h.lastPrompt())

	require.NoError(t, os.Remove(listed))
	v.prompt(s.ID, "three")
	told = h.lastPrompt()[1]
	require.Contains(t, told, "This list of skills replaces")
	require.Contains(t, told, "- listed: Does listed.", "that of the other root")
	require.NotContains(t, told, "Of the working directory.", "they have not changed")
	v.disconnect()

	v = h.connect()
	v.load(s.ID, with(all))
	v.prompt(s.ID, "four")
	require.Contains(t, h.lastPrompt()[1], "no longer available")
	h.history(s.ID) // it has nothing of this
}

// folderOf returns the folder of the folder of a skill, from its root.
func folderOf(root fmt.Stringer, skill string) string {
	rel, _ := filepath.Rel(root.String(), filepath.Dir(filepath.Dir(skill)))
	return filepath.ToSlash(rel)
}

// Clause D1.
func TestLongListOfSkills(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit   int
		expect  string
		options proxy.Options
	}{
		"descriptions are shortened": {limit: 4000, expect: "- skill-09: word word"},
		"the rest is counted": {limit: 1100, expect: "more: search the folders for " +
			"words of the task in files named SKILL.md\n"},
		"a tool finds the rest": {1100, "more: the tool find_skills of the MCP server " +
			"\"acp_agent_roots\", if you have it, finds them by words of the task\n",
			withTools(t, profiles.Profile{})},
		"each root has its share": {limit: 1400, expect: "- of-the-last: Last.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, v := connected(t, abilities{}, c.options.With(proxy.Limits{MaxSkills: c.limit}))
			all := roots(t, 2)
			put(t, all.At(2), ".agents/skills/of-the-last/SKILL.md",
				"---\nname: of-the-last\ndescription: Last.\n---\n")
			for i := range 10 {
				put(t, all.At(1), fmt.Sprintf(".agents/skills/skill-%02d/SKILL.md", i),
					fmt.Sprintf("---\nname: skill-%02d\ndescription: %s\n---\nBody.\n", i,
						strings.Repeat("word ", 150)))
			}
			s := v.open(all)
			v.prompt(s.ID, "one")
			_, list, found := strings.Cut(h.lastPrompt()[1], "# Skills found")
			require.True(t, found)
			require.Contains(t, list, c.expect)
			require.Less(t, len(list), c.limit+200)
		})
	}
}

// Clause D2.
func TestInstructionsOfDirectoriesAreListed(t *testing.T) {
	t.Parallel()
	h, v := connected(t, abilities{}, proxy.Options{
		Profile: profiles.Profile{Finds: profiles.Finds{InCwd: []string{"AGENTS.md", "*/**/AGENTS.md"}}}})
	all := roots(t, 1)
	put(t, all.Cwd(), "web/AGENTS.md", "Found.")
	own := put(t, all.Cwd(), "api/CLAUDE.md", "Of the interface.")
	other := put(t, all.At(1), "deep/down/AGENTS.md", "Of the depths.")
	s := v.open(all)
	v.prompt(s.ID, "one")
	told := h.lastPrompt()[1]
	require.Contains(t, told, fmt.Sprintf("- %q: %q\n- %q: %q\n", filepath.Dir(own), own,
		filepath.Dir(other), other))
	require.NotContains(t, told, "web/AGENTS.md", "D3: the agent reads it itself")
	require.NotContains(t, told, "Of the")
	v.prompt(s.ID, "two")
	require.Equal(t, []string{"two"}, h.lastPrompt())
}

// Clause D2.
func TestManyInstructionsOfDirectories(t *testing.T) {
	t.Parallel()
	h, v := connected(t, abilities{}, proxy.Options{})
	all := roots(t, 2)
	for i := range 60 {
		put(t, all.At(1), fmt.Sprintf("%02d/AGENTS.md", i), "One of many.")
	}
	last := put(t, all.At(2), "deep/AGENTS.md", "Of the last root.")
	s := v.open(all)
	v.prompt(s.ID, "one")
	told := h.lastPrompt()[1]
	require.Contains(t, told, fmt.Sprintf("- %q: %q\n", filepath.Dir(last), last),
		"each root has its share")
	require.Contains(t, told, "and 11 more: look for")
}

// Clause D1.
func TestFirstPromptIsACommandOfTheAgent(t *testing.T) {
	t.Parallel()
	h, v := connected(t, abilities{}, proxy.Options{Profile: profiles.Profile{Context: profiles.Context{AfterCommands: true}}})
	all := roots(t, 1)
	s := v.open(all)
	v.prompt(s.ID, "/compact")
	require.Equal(t, []string{"/compact"}, h.lastPrompt(),
		"most agents do not give it to their model")
	v.prompt(s.ID, "/review main")
	require.Equal(t, "/review main", h.lastPrompt()[0])
	require.Contains(t, h.lastPrompt()[1], all.At(1).String())
	v.prompt(s.ID, "/review main")
	require.Equal(t, []string{"/review main"}, h.lastPrompt())
}

// An agent whose model is told the instructions of MCP servers learns there what is in the folders,
// and in prompts only what changes, and everything if it does not start the server.
//
// Clause P6.
func TestContextInTheInstructionsOfTheToolServer(t *testing.T) {
	h, v := connected(t, abilities{Load: true}, withTools(t, profiles.Profile{Context: profiles.Context{ByServer: true}}))
	all := roots(t, 2)
	path := put(t, all.At(1), "AGENTS.md", "Of the first.")
	s := v.open(all)
	told := h.servers("session/new")[0].tells(t)
	require.Contains(t, told, "several folders")
	require.Contains(t, told, "Of the first.")
	v.prompt(s.ID, "one")
	require.Equal(t, []string{"one"}, h.lastPrompt())

	require.NoError(t, os.WriteFile(path, []byte("Changed."), 0o644))
	v.prompt(s.ID, "two")
	require.Contains(t, h.lastPrompt()[1], "These instructions replace")
	require.NotContains(t, h.lastPrompt()[1], "several folders")
	v.prompt(s.ID, "three")
	require.Equal(t, []string{"three"}, h.lastPrompt())
	v.disconnect()

	v = h.connect() // the agent has started again
	v.load(s.ID, all)
	require.Contains(t, h.servers("session/load")[0].tells(t), "Changed.")
	v.prompt(s.ID, "four")
	require.Equal(t, []string{"four"}, h.lastPrompt())
	v.disconnect()

	v = h.connect()
	v.load(s.ID, all)
	v.prompt(s.ID, "five")
	require.Contains(t, h.lastPrompt()[1], "several folders", "it has not started the server")
}

// A session of an agent that is given its folders otherwise, or has only one, has a server that
// tells what is in them if there is something to tell.
//
// Clause P6.
func TestContextInTheInstructionsOfAServerWithoutFileTools(t *testing.T) {
	h, v := connected(t, abilities{Load: true}, withTools(t, profiles.Profile{Roots: profiles.Roots{Flag: "--dir"}, Finds: profiles.Finds{InCwd: []string{"AGENTS.md"}}, Context: profiles.Context{ByServer: true}}))
	all := roots(t, 1)
	v.open(all)
	require.Empty(t, h.servers("session/new"), "there is nothing to tell")

	put(t, all.Cwd(), "AGENTS.md", "Found.")
	put(t, all.At(1), "AGENTS.md", "Of the first.")
	put(t, all.Cwd(), "skills/one/SKILL.md", "---\nname: one\ndescription: One.\n---\n")
	for _, roots := range []workspace.Roots{all, with(all)} {
		s := v.open(roots)
		given := h.servers("session/new")[0]
		require.Equal(t, []string{"mcp", "--tell-only", "--roots-from"}, given.Args[:3])
		told := given.tells(t)
		require.NotContains(t, told, "Found.")
		require.Equal(t, roots.Len() > 1, strings.Contains(told, "Of the first."))
		require.Contains(t, told, "- one: One.")
		require.NotContains(t, told, "several folders")
		v.prompt(s.ID, "one")
		require.Equal(t, []string{"one"}, h.lastPrompt())
	}
}

// Sessions whose relays are shared do not count on the tool server of a process that has ended.
//
// Clauses A24, P6.
func TestContextAfterTheProcessWithTheToolServerHasEnded(t *testing.T) {
	h, v := connected(t, abilities{Load: true}, withTools(t, profiles.Profile{
		Roots:   profiles.Roots{SharesServers: true},
		Context: profiles.Context{ByServer: true}}))
	all := roots(t, 2)
	one := v.open(all)
	require.Contains(t, h.servers("session/new")[0].tells(t), "several folders")
	v.crash(one.ID)
	two := v.open(all)
	v.prompt(two.ID, "two")
	require.Len(t, h.lastPrompt(), 2, "the new process has not started the server")
	require.Contains(t, h.lastPrompt()[1], "several folders")
}

package model

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

func TestSystemPrompt(t *testing.T) {
	cwd := dirtest.New(t, "AGENTS.md", "Use tabs.\n")
	other := dirtest.New(t, "CLAUDE.md", "Use spaces.\n", ".claude/skills/fix/SKILL.md",
		"---\nname: fix\ndescription: Fixes it.\n---\nFix it well.\n",
		".claude/skills/mine/SKILL.md", "---\nname: mine\ndescription: Only for "+
			"users.\ndisable-model-invocation: true\n---\nMine.\n")
	e := open(t, setup{roots: []string{cwd, other}})
	e.prompt("Hi", modelserver.Read("AGENTS.md"), modelserver.Say("Hello."))
	system := e.last().Instructions
	for _, want := range []string{
		systemText, "- 0: " + cwd + " (working directory)\n- 1: " + other + "\n", "## Folder 0, " +
			cwd + ": AGENTS.md\n\n```\nUse tabs.\n```",
		"## Folder 1, " + other + ": CLAUDE.md\n\n```\nUse spaces.\n```", "## Folder 1, " + other +
			"\n\nIn .claude/skills:\n\n- fix: Fixes it.\n",
	} {
		require.Contains(t, system, want)
	}
	require.NotContains(t, system, "mine")
	require.NotContains(t, system, "Fix it well.")
	requests := e.model.Requests()
	for _, r := range requests {
		require.Equal(t, system, r.Instructions, "it is the same in each step")
	}
	for mode, want := range map[string]string{"plan": "# Mode: plan",
		"read_only": "# Mode: read only"} {
		e.call("session/set_mode", map[string]any{"modeId": mode})
		e.prompt("Go")
		require.True(t, strings.HasPrefix(e.last().Instructions, system))
		require.Contains(t, e.last().Instructions, want)
	}
}

// A folder with many skills leaves room for those of the folders after it.
func TestManySkills(t *testing.T) {
	var many []string
	for i := range 900 {
		many = append(many, fmt.Sprintf("skills/s%03d/SKILL.md", i),
			fmt.Sprintf("---\nname: s%03d\ndescription: One of many.\n---\nText.\n", i))
	}
	library, team := dirtest.New(t, many...), dirtest.New(t, "skills/ours/SKILL.md",
		"---\nname: ours\ndescription: Ours.\n---\nText.\n")
	e := open(t, setup{roots: []string{dirtest.New(t), library, team}})
	e.prompt("Hi")
	system := e.last().Instructions
	require.Contains(t, system, "## Folder 2, "+team+"\n\nIn skills:\n\n- ours: Ours.\n")
	require.Contains(t, system, "## Folder 1, "+library+"\n\nIn skills:\n\n- s000: One of many.\n")
	require.NotContains(t, system, "- s899: ")
	require.Contains(t, system, "more: find_skills finds them by words of the task")
	r := e.prompt("Find it", modelserver.UseWith("find_skills", `{"query":"s899"}`))
	require.Equal(t, `Find skills for "s899"`, r.calls()[0].Title)
	require.Contains(t, e.last().Text(), library+"/skills/s899/SKILL.md")
}

// The text names tools that exist.
func TestSystemTextNamesTools(t *testing.T) {
	names := map[string]bool{}
	for _, tool := range tools.New(nil, tools.Options{}).Tools() {
		names[tool.Name] = true
	}
	for _, name := range []string{"find_files", "search", "read_file"} {
		require.True(t, names[name], name)
		require.Contains(t, systemText, "`"+name+"`")
	}
	require.LessOrEqual(t, strings.Count(systemText, "\n"), 80)
}

// The model is told once, in the next message, how the roots have changed.
func TestChangedRoots(t *testing.T) {
	cwd, one, two := dirtest.New(t), dirtest.New(t), dirtest.New(t)
	e := open(t, setup{roots: []string{cwd, one}})
	r := e.prompt("Hi")
	require.Empty(t, r.calls())
	e.setup.roots = []string{cwd, two}
	for i := range 2 {
		e.restart()
		r = e.prompt("Still there?")
		require.Len(t, r.calls(), 1-i, "only the first time")
		require.Equal(t, 1, strings.Count(e.last().Text(), "The folders of the session have "+
			"changed. The folders are:\n\n- 0: "+cwd+" (working directory)\n- 1: "+two+"\n"))
		require.Contains(t, e.last().Instructions, "- 1: "+two+"\n")
	}
	e.answer(allowOnce)
	e.prompt("/roots add " + one)
	e.prompt("Look again")
	require.Contains(t, e.last().Text(), "- 1: "+two+"\n- 2: "+one+"\n")
	require.NotContains(t, e.last().Text(), "/roots")

	e.setup.roots = []string{cwd}
	session, err := e.client.ForkSession(t.Context(), e.id, e.lifecycle())
	require.NoError(t, err)
	e.id = session.ID
	r = e.prompt("And now?")
	require.Equal(t, "Told the model that the folders have changed", r.calls()[0].Title)
}

// The client's instructions are part of the model's or replace them, as the client says, for as
// long as the session is open. The next request that opens it has its own.
//
// Clause A1.
func TestInstructionsOfTheClient(t *testing.T) {
	e := open(t, setup{})
	e.answer(allowOnce)
	ours := strings.TrimSpace(strings.SplitN(systemText, "\n", 2)[0])
	lifecycle := func(method, mode string, texts ...string) {
		params := map[string]any{"cwd": e.setup.roots[0], "mcpServers": []any{}}
		var content []any
		for _, text := range texts {
			content = append(content, map[string]any{"type": "text", "text": text})
		}
		if mode != "" {
			params["systemPrompt"] = map[string]any{"mode": mode, "content": content}
		}
		if method == "session/new" {
			result, err := e.client.Call(t.Context(), method, backend.Encode(params))()
			require.NoError(t, err)
			var opened struct{ SessionID string }
			require.NoError(t, json.Unmarshal(result, &opened))
			e.id = opened.SessionID
			return
		}
		e.call(method, params)
	}
	for _, method := range []string{"session/new", "session/load", "session/resume"} {
		lifecycle(method, "append", "Be brief.", "Be kind.\n")
		e.prompt("Go on.")
		require.Contains(t, e.last().Instructions, ours)
		require.Contains(t, e.last().Instructions, "\n\nBe brief.\n\nBe kind.\n\n# This session\n")
		lifecycle(method, "override", "Only count.")
		e.prompt("Go on.")
		require.True(t, strings.HasPrefix(e.last().Instructions, "Only count.\n\n# This session\n"))
		require.NotContains(t, e.last().Instructions, ours)
		require.NotEmpty(t, e.last().Tools)
		other := dirtest.New(t)
		e.prompt("/roots add " + other)
		e.prompt("Go on.")
		require.Contains(t, e.last().Instructions, "Only count.")
		require.Contains(t, e.last().Instructions, other)
		lifecycle("session/resume", "")
		e.prompt("Go on.")
		require.NotContains(t, e.last().Instructions, "Only count.")
		require.Contains(t, e.last().Instructions, ours)
	}
	require.NotContains(t, e.stored(), "Only count.")
}

// Three repositories with instructions, skills and servers leave most of a small context for the
// conversation.
//
// Clause B6.
func TestSharesOfASmallContext(t *testing.T) {
	var roots []string
	for range 3 {
		dir := dirtest.New(t, "AGENTS.md", "Root.\n"+strings.Repeat("Follow the style of the code around.\n", 900))
		for n := range 60 {
			skill := filepath.Join(dir, ".claude", "skills", fmt.Sprintf("skill-%d", n))
			require.NoError(t, os.MkdirAll(skill, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte(fmt.Sprintf(
				"---\nname: skill-%d\ndescription: %s\n---\nDo it.\n", n, strings.Repeat("Does something. ", 12))), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d.txt", n)), nil, 0o600))
		}
		roots = append(roots, dir)
	}
	for _, tokens := range []int{8192, 16_384, 32_768, 131_072} {
		t.Run(fmt.Sprint(tokens), func(t *testing.T) {
			e := open(t, setup{roots: roots, servers: []sdk.McpServer{serverIn("awkward", "odd")}, model: small(tokens)})
			r := e.prompt("Hello", modelserver.Say("Hello."))
			require.True(t, strings.HasSuffix(r.text(), "Hello."), r.text())
			used := len(e.last().Body) / bytesPerToken
			require.Less(t, used, room(llm.Model{ContextTokens: tokens})*7/8)
			require.Equal(t, 3, strings.Count(e.last().Instructions, "Root."), "each root has some")
		})
	}
}

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

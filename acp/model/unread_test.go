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

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// A call or a thought that the server has left in the text is explained, once.
//
// Clause B7.
func TestUnreadAnswers(t *testing.T) {
	const parser = "The model wrote a tool call as text, so nothing was run"
	for said, hint := range map[string]string{
		"<tool_call>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>": parser,
		"I read. <function=read_file><parameter=path>a</parameter></function>":               parser,
		"[TOOL_CALLS][{\"name\":\"search\"}]":                                                parser,
		`{"name":"read_file","parameters":{"path":"a"}}`:                                     parser,
		"```json\n{\"name\":\"Read_File\",\"arguments\":{}}\n```":                            parser,
		"Hm, I see.\n</think>\n\nHello":                                                      "--reasoning-parser",
		"<thinking>Hm</thinking>Hello":                                                       "--reasoning-parser",
		"<tool_call> is a tag.":                                                              "",
		`{"name":"Ana","arguments":[]}`:                                                      "",
		"Hello":                                                                              "",
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			e := open(t, setup{})
			order, err := json.Marshal(said)
			require.NoError(t, err)
			words := "Say.\nmodel: {\"do\":\"say\",\"text\":" + string(order) + "}"
			first := e.send(sdk.TextBlock(words)).text()
			require.True(t, strings.HasPrefix(first, said), first)
			if hint == "" {
				require.Equal(t, said, first)
				return
			}
			require.Contains(t, first, hint)
			require.Equal(t, said, e.send(sdk.TextBlock(words)).text(), "once")
		})
	}
}

// Tools and arguments have the names that weak models give them, and a small context has ten tools.
//
// Clause B6.
func TestWeakModels(t *testing.T) {
	dir := dirtest.New(t, "a.txt", "one\n")
	e := open(t, setup{roots: []string{dir}, model: small(16_384)})
	e.answer(allowOnce)
	r := e.prompt("Do it",
		modelserver.UseWith("read_file", `{"file_path":"a.txt"}`),
		modelserver.UseWith("edit_file", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`),
		modelserver.UseWith("run_command", `{"cmd":"echo three"}`),
		modelserver.UseWith("update_plan", `{"todos":[{"content":"x","status":"done"}]}`))
	require.Equal(t, modelserver.Done, r.text())
	require.Equal(t, "two\n", read(t, filepath.Join(dir, "a.txt")))
	for _, call := range r.calls() {
		require.Equal(t, sdk.ToolCallStatusCompleted, call.Status, call.Title)
	}
	require.Equal(t, "Read a.txt", r.calls()[0].Title)
	require.JSONEq(t, `{"path":"a.txt"}`, string(r.calls()[0].RawInput))
	require.Len(t, e.last().Tools, 10)

	b := &toolbox{byName: map[string]tool{}}
	b.byName["read_file"] = tool{remote: "x"}
	for _, name := range []string{"read_file", "Read_File", "functions.read_file", "read-file"} {
		require.Equal(t, "x", b.find(name).remote, name)
	}
	require.Empty(t, b.find("other.read_file").remote)
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

// The tools of one server do not displace those of another one.
//
// Clause B7.
func TestToolsInTurns(t *testing.T) {
	list := func(prefix string, n int) (all []mcp.Tool) {
		for i := range n {
			all = append(all, mcp.Tool{Name: fmt.Sprintf("%s.%d", prefix, i)})
		}
		return all
	}
	counts := map[string]int{}
	for _, tool := range inTurns([][]mcp.Tool{list("big", 423), nil, list("small", 23)})[:110] {
		counts[strings.Split(tool.Name, ".")[0]]++
	}
	require.Equal(t, map[string]int{"big": 87, "small": 23}, counts)
	require.Len(t, inTurns([][]mcp.Tool{list("big", 423), list("small", 23)}), 446)
}

package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
)

func TestAnnouncedCommands(t *testing.T) {
	c := open(t, plant(t, nil))
	require.Len(t, c.client.updates, 1)
	u := c.client.updates[0]
	require.Equal(t, "available_commands_update", u.Kind)
	var names []string
	for _, command := range u.Commands {
		names = append(names, command["name"].(string))
		require.NotEmpty(t, command["description"])
	}
	require.Equal(t, []string{"find", "search", "read", "instructions",
		"skills", "commands", "call", "help"}, names)
	require.ElementsMatch(t, backend.OwnCommands(Kind), append(backend.AdapterCommands(),
		slices.DeleteFunc(names, func(name string) bool { return name == backend.MCPCommand })...))
	require.Equal(t, map[string]any{"hint": "GLOB"}, u.Commands[0]["input"])
	require.NotContains(t, u.Commands[7], "input")
}

func TestHelp(t *testing.T) {
	c := open(t, plant(t, nil))
	for _, text := range []string{"/help", "", "/", " /help me "} {
		a := c.ask(text)
		require.Equal(t, "end_turn", a.stop)
		for _, command := range builtins() {
			require.Contains(t, a.text(), command.usage())
		}
		require.Contains(t, a.text(), "`/roots [add DIR | remove DIR]`", "the adapter's command")
	}
}

func TestUnknownCommand(t *testing.T) {
	a := open(t, plant(t, nil)).ask("/fly away")
	require.Equal(t, "end_turn", a.stop)
	require.Contains(t, a.text(), "There is no command `/fly`")
	require.Contains(t, a.text(), "/search REGEXP")

	c := open(t, plant(t, fileTree{
		".agents/skills/quiet/SKILL.md": "---\nname: quiet\ndescription: For models.\n" +
			"user-invocable: false\n---\nDo it.\n",
		".agents/skills/vague/SKILL.md": "---\nname: vague\n---\nDo it.\n",
	}))
	require.Contains(t, c.ask("/quiet").text(),
		"The skill `quiet` is not a slash command: its file says so. `/read /")
	require.Contains(t, c.ask("/vague").text(), "cannot be used: it has no description.")
	require.Contains(t, c.ask("/skills").text(),
		"quiet/SKILL.md, not a slash command: its file says so")
}

func TestMissingInput(t *testing.T) {
	c := open(t, plant(t, nil))
	for text, usage := range map[string]string{
		"/find": "/find GLOB", "/search ": "/search REGEXP", "/read\n": "/read PATH[:FIRST-LAST]",
	} {
		a := c.ask(text)
		require.Equal(t, "end_turn", a.stop)
		require.Contains(t, a.text(), usage)
		require.Len(t, a.updates, 1, "no tool call")
	}
}

func TestOtherMethods(t *testing.T) {
	r := New()
	require.Nil(t, r.Call(t.Context(), "authenticate", nil))
	r.Notify(t.Context(), "anything", nil)

	s := open(t, plant(t, nil)).session
	require.Nil(t, s.Call(t.Context(), "session/set_mode", nil))
	s.Notify(t.Context(), "anything", nil)
	s.Cancel(nil)

	info, err := r.Initialize(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Equal(t, "explore", info.Kind)
	require.False(t, info.ConnectsServers)
}

// Clause A25.
func TestCommandsOfRootsAreAnnounced(t *testing.T) {
	first := plant(t, fileTree{".claude/commands/git/commit.md": "---\ndescription: Commits.\n" +
		"argument-hint: MESSAGE\n---\nCommit $ARGUMENTS.\n"})
	second := plant(t, fileTree{
		".claude/commands/git/commit.md": "Of the second.\n",
		".claude/commands/find.md":       "Not our find.\n",
		".agents/skills/tidy/SKILL.md":   skillOf("tidy"),
	})
	c := open(t, first, second)
	all := announced(c.client.updates)
	require.Equal(t, "Command of "+filepath.Base(first)+": Commits.",
		all["git:commit"]["description"], "A30: labelled with its root")
	require.Equal(t, map[string]any{"hint": "MESSAGE"}, all["git:commit"]["input"])
	require.Equal(t, "Skill of "+filepath.Base(second)+": About tidy.", all["tidy"]["description"])
	require.Equal(t, "Find files by name in all folders", all["find"]["description"],
		"our own names are ours")
	require.Len(t, all, len(builtins())+2)

	require.Equal(t, []string{"Commit a message."}, c.ask("/git:commit a message").lines())
	text := c.ask("/commands").text()
	require.Contains(t, text, "called by /git:commit")
	require.Contains(t, text, "git:commit: shadowed")
	require.Contains(t, text, "not a slash command: /find is taken")
}

// Clause D4.
func TestArguments(t *testing.T) {
	c := open(t, plant(t, fileTree{
		".claude/commands/fix.md":      "Fix $1 in $ARGUMENTS[1].\n",
		".claude/commands/show.md":     "Show !`git diff` and @a.md.\n",
		".agents/skills/tidy/SKILL.md": skillOf("tidy"),
	}))
	require.Equal(t, []string{"Fix the bug in go."}, c.ask(`/fix "the bug" go`).lines())
	require.NotContains(t, c.ask("/fix it").text(), "Your arguments")
	shown := c.ask("/show").text()
	require.Equal(t, 1, strings.Count(shown, "No commands were run and no files were inserted"),
		shown)
	require.Contains(t, shown, "!`git diff`")
	require.Contains(t, c.ask("/tidy up").text(), "Your arguments: `up`")
}

func TestChangedCommandsAreAnnounced(t *testing.T) {
	cwd := plant(t, nil)
	c := open(t, cwd)
	require.Len(t, announced(c.client.updates), len(builtins()))
	require.Nil(t, announced(c.ask("/roots").updates), "nothing has changed")

	write(t, filepath.Join(cwd, ".agents", "skills", "new", "SKILL.md"), skillOf("new"))
	c.rescan()
	a := c.ask("/new")
	require.Contains(t, announced(a.updates), "new")
	require.Equal(t, "available_commands_update", a.updates[0].Kind)
	require.Equal(t, []string{"Do new."}, a.lines())
	c.rescan()
	require.Nil(t, announced(c.ask("/roots").updates))
}

func TestMaxCommands(t *testing.T) {
	tree := fileTree{}
	for i := range maxCommands + 1 {
		name := fmt.Sprintf("skill-%03d", i)
		tree[".agents/skills/"+name+"/SKILL.md"] = skillOf(name)
	}
	c := open(t, plant(t, tree))
	require.Len(t, announced(c.client.updates), len(builtins())+maxCommands)
	require.Equal(t, []string{"Do skill-500."}, c.ask("/skill-500").lines(),
		"it is a command nevertheless")
	require.Contains(t, c.ask("/skills").text(),
		"Only the first 500 of 501 skills and commands are announced")
}

func many(n int) fileTree {
	files := fileTree{}
	for i := range n {
		files[fmt.Sprintf("%02d/%03d.txt", i%10, i)] = "needle\nhay\nneedle\n"
	}
	return files
}

// Some clients show each chunk as a document.
func TestEachChunkIsWholeMarkdown(t *testing.T) {
	files := many(20)
	files["long.md"] = strings.Repeat("needle in a long line\n```\n", 100)
	cwd, other := plant(t, files), plant(t, fileTree{"last.txt": "needle\n"})
	questions := []string{"needle", "/search needle", "/find *", "/find last.txt", "/read long.md",
		"/skills", "/help"}
	c := open(t, cwd, other)
	for _, question := range questions {
		for _, u := range c.ask(question).updates {
			if u.Kind == "agent_message_chunk" {
				requireClosedFences(t, u.text())
			}
		}
	}
}

// requireClosedFences fails the test if a code block does not begin and end in the text.
func requireClosedFences(t *testing.T, markdown string) {
	t.Helper()
	fence := ""
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		marks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(marks) >= 3:
			fence = marks
		case fence != "" && line == marks && len(marks) >= len(fence):
			fence = ""
		}
	}
	require.Empty(t, fence, markdown)
}

// Clause W6.
func TestCancelledTurn(t *testing.T) {
	cwd := plant(t, many(300))
	for _, question := range []string{"needle", "/search needle", "/find *.txt", "/read 00/000.txt",
		"/search nothing"} {
		for _, kind := range []string{"tool_call", "agent_message_chunk", "tool_call_update"} {
			t.Run(question+" at "+kind, func(t *testing.T) {
				c := open(t, cwd)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				c.client.onUpdate = func(u update) error {
					if u.Kind == kind {
						cancel(backend.ErrCancelled)
					}
					return nil
				}
				a := c.prompt(ctx, blocks(question))
				require.Equal(t, "cancelled", a.stop)
				require.Equal(t, kind, a.updates[len(a.updates)-1].Kind, "nothing is sent after it")
			})
		}
	}
}

// Clause W6.
func TestTurnCancelledBeforehand(t *testing.T) {
	c := open(t, plant(t, many(1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, question := range []string{"needle", "/search needle", "/find *", "/read 00/000.txt",
		"/roots", "/help", "/skills", "/instructions", "/call a.b"} {
		a := c.prompt(ctx, blocks(question))
		require.Equal(t, "cancelled", a.stop)
		require.Empty(t, a.updates)
	}
}

// What the client does not take is the turn's end, and no worker stays behind.
func TestFailedUpdate(t *testing.T) {
	c := open(t, plant(t, many(300)))
	broken := errors.New("broken")
	c.client.onUpdate = func(u update) error {
		if u.Kind == "agent_message_chunk" {
			return broken
		}
		return nil
	}
	for _, question := range []string{"needle", "/search needle", "/find *", "/help"} {
		params, err := json.Marshal(map[string]any{"prompt": blocks(question)})
		require.NoError(t, err)
		_, err = c.session.Prompt(t.Context(), params, c.client)()
		require.ErrorIs(t, err, broken)
	}
}

func TestToolCallIDs(t *testing.T) {
	cwd := plant(t, fileTree{"a.txt": "x\n"})
	seen := make(map[string]bool)
	for range 3 { // as after restarts
		id := open(t, cwd).ask("x").call(t).ID
		require.False(t, seen[id])
		seen[id] = true
	}
}

func TestCall(t *testing.T) {
	f := &fakeTools{status: []mcp.Status{ready("e")}}
	c := withTools(t, f, plant(t, nil))
	for _, one := range []struct {
		name   string
		result backend.ToolResult
		lines  []string
		says   string
	}{
		{"text", backend.ToolResult{Content: []backend.Raw{blockOf("a\nb"), blockOf("")}},
			[]string{"a", "b"}, "The tool `e.t` returned:"},
		{"an error", backend.ToolResult{Failed: true, Content: []backend.Raw{blockOf("no")}},
			[]string{"no"}, "The tool `e.t` reports an error:"},
		{"nothing", backend.ToolResult{}, nil, "The tool `e.t` returned without content."},
		{"structure", backend.ToolResult{Structured: backend.Raw(`{"a":1}`),
			Cut: "The result has 3 MB"}, []string{`{"a":1}`}, "Truncated: The result has 3 MB."},
		{"structure beside text", backend.ToolResult{Content: []backend.Raw{blockOf("six")},
			Structured: backend.Raw(`{"y":6}`)}, []string{"six", `{"y":6}`}, "returned:"},
		{"an image", backend.ToolResult{
			Content: []backend.Raw{
				backend.Raw(`{"type":"image","mimeType":"image/png","data":""}`)}}, nil,
			"A block of type `image` (`image/png`) of 49 bytes."},
		{"a resource",
			backend.ToolResult{
				Content: []backend.Raw{backend.Raw(`{"type":"resource","resource":{"uri":"a:b",` +
					`"text":"t"}}`)}}, []string{"t"}, "The resource `a:b`:\n"},
		{"a resource with a type",
			backend.ToolResult{
				Content: []backend.Raw{backend.Raw(`{"type":"resource","resource":{"uri":"a:b",` +
					`"mimeType":"text/x","text":"t"}}`)}}, []string{"t"},
			"The resource `a:b`, of type `text/x`:\n"},
		{"a binary resource",
			backend.ToolResult{
				Content: []backend.Raw{backend.Raw(`{"type":"resource","resource":{"uri":"a:b",` +
					`"mimeType":"image/png","blob":"AAAA"}}`)}}, nil,
			"The resource `a:b`, of type `image/png`, is not text: it is a block of " +
				"3 bytes."},
		{"something without a type",
			backend.ToolResult{Content: []backend.Raw{backend.Raw(`{"type":"new"}`)}}, nil,
			"A block of type `new` of 14 bytes."},
		{"a link", backend.ToolResult{Content: []backend.Raw{
			backend.Raw(`{"type":"resource_link","uri":"a:b"}`)}}, nil, "A link to `a:b`."},
		{"invalid", backend.ToolResult{Content: []backend.Raw{backend.Raw(`7`)}}, nil,
			"An invalid block of 1 byte."},
	} {
		t.Run(one.name, func(t *testing.T) {
			f.result, f.log = one.result, nil
			a := c.ask("/call e.t\n {\"x\": 1}")
			require.Contains(t, f.log, `call e.t {"x": 1}`)
			require.Equal(t, one.lines, a.lines())
			require.Contains(t, a.text(), one.says)
		})
	}
	f.log = nil
	require.Contains(t, c.ask("/call").text(), "/call SERVER.TOOL [JSON]")
	require.Contains(t, c.ask("/call e.t {").text(), "are not valid JSON: `{`")
	require.Empty(t, f.log)
}

func TestCallTruncatesResults(t *testing.T) {
	f := &fakeTools{result: backend.ToolResult{
		Content: []backend.Raw{blockOf(strings.Repeat("x", 500<<10)), blockOf("later")}}}
	c := open(t, plant(t, nil))
	c.client.tools = f
	a := c.ask("/call e.t")
	require.Equal(t, []string{strings.Repeat("x", maxBytes)}, a.lines())
	require.Contains(t, a.text(),
		"Truncated: this text is 500 KiB long; the limit for an answer is 128 KiB.")
	require.Contains(t, a.text(),
		"Truncated: this text is 5 bytes long; the limit for an answer is 128 KiB.")
}

func TestCallErrors(t *testing.T) {
	f := &fakeTools{status: []mcp.Status{ready("e")}}
	c := withTools(t, f, plant(t, nil))
	f.err = &mcp.UnknownNameError{Kind: "tool", Name: "e.t"}
	require.Contains(t, c.ask("/call e.t").text(),
		"have no tool e.t. `/mcp tools` lists what they offer.")
	f.err = errors.New("e.t was not used: the user did not allow it")
	require.Contains(t, c.ask("/call e.t").text(), "This did not work: e.t was not used")
	f.err = fmt.Errorf("asking: %w", backend.ErrCancelled)
	require.Equal(t, "cancelled", c.ask("/call e.t").stop)
	f.err = backend.ErrClosed
	params, err := json.Marshal(map[string]any{"prompt": blocks("/call e.t")})
	require.NoError(t, err)
	_, err = c.session.Prompt(t.Context(), params, c.client)()
	require.ErrorIs(t, err, backend.ErrClosed)
}

// fakeTools are MCP servers that answer at once.
type fakeTools struct {
	backend.Tools
	status []mcp.Status
	result backend.ToolResult
	err    error
	// what was asked for, in order
	log []string
}

func (f *fakeTools) Servers() []mcp.Status { return f.status }

func (f *fakeTools) Prompt(_ context.Context, name, arguments string) (backend.ToolResult, error) {
	f.log = append(f.log, "prompt "+name+" "+arguments)
	return f.result, f.err
}

func (f *fakeTools) Call(
	_ context.Context, _ backend.Updates, r backend.ToolRequest,
) (backend.ToolResult, error) {
	f.log = append(f.log, "call "+r.Name+" "+string(r.Arguments))
	return f.result, f.err
}

func blockOf(text string) backend.Raw { return backend.Encode(sdk.TextBlock(text)) }

// withTools is a session whose MCP servers are f.
func withTools(t testing.TB, f *fakeTools, roots ...string) *conversation {
	c := open(t, roots...)
	c.client.tools = f
	return c
}

func ready(name string) mcp.Status {
	return mcp.Status{Name: name, Prefix: name, Transport: "stdio", State: mcp.Ready}
}

func TestServerPrompt(t *testing.T) {
	server := ready("e")
	f := &fakeTools{status: []mcp.Status{server}, result: backend.ToolResult{
		Content: []backend.Raw{backend.Raw(`{"type":"text","text":"Review it."}`)}}}
	c := withTools(t, f, plant(t, nil))
	a := c.ask("/e:review a.go terse")
	require.Contains(t, a.text(), "The prompt `e:review` returned:\n\n```text\nReview it.\n```")
	require.Equal(t, []string{"prompt e:review a.go terse"}, f.log)

	server.Prompts = []mcp.Prompt{{Name: "e:review", Description: "Reviews.", Hint: "file [style]"}}
	f.status = []mcp.Status{server}
	announced := c.ask("/help").updates[0]
	require.Equal(t, "available_commands_update", announced.Kind)
	last := announced.Commands[len(announced.Commands)-1]
	require.Equal(t, "e:review", last["name"])
	require.Equal(t, "Prompt of MCP server \"e\": Reviews.", last["description"])
	require.Equal(t, map[string]any{"hint": "file [style]"}, last["input"])

	f.err = &mcp.UnknownNameError{Kind: "prompt", Name: "x:y"}
	require.Contains(t, c.ask("/x:y").text(), "have no prompt x:y")
}

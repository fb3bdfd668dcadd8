package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
)

// fakeTools are MCP servers that answer at once.
type fakeTools struct {
	backend.NoTools
	status  []backend.ServerStatus
	tools   []backend.Tool
	prompts []backend.Prompt
	result  backend.ToolResult
	err     error
	// what was asked for, in order
	log []string
}

func (f *fakeTools) Servers() []backend.ServerStatus { return f.status }

func (f *fakeTools) List(context.Context) ([]backend.Tool, error) {
	f.log = append(f.log, "list")
	return f.tools, nil
}

func (f *fakeTools) Prompts(context.Context) ([]backend.Prompt, error) {
	f.log = append(f.log, "prompts")
	return f.prompts, nil
}

func (f *fakeTools) Call(_ context.Context, _ backend.Updates, name string, arguments backend.Raw) (backend.ToolResult, error) {
	f.log = append(f.log, "call "+name+" "+string(arguments))
	return f.result, f.err
}

func (f *fakeTools) Prompt(_ context.Context, name string, arguments map[string]string) ([]backend.PromptMessage, error) {
	f.log = append(f.log, fmt.Sprint("prompt ", name, " ", arguments))
	return []backend.PromptMessage{{Role: "user", Content: blockOf("Be nice.")}}, f.err
}

func (f *fakeTools) Resources(context.Context) ([]backend.Resource, error) {
	return []backend.Resource{{Server: "e", URI: "demo://x", Description: "A thing"}}, nil
}

func blockOf(text string) backend.Raw { return backend.Encode(textBlock{"text", text}) }

// withTools is a session whose MCP servers are f.
func withTools(t testing.TB, f *fakeTools, roots ...string) *conversation {
	c := open(t, Options{}, roots...)
	c.client.tools = f
	return c
}

func ready(name string) backend.ServerStatus {
	return backend.ServerStatus{
		Name: name, Prefix: name, Transport: "stdio", State: backend.ServerReady, Product: name + " 1.0", Revision: "2025-11-25", RootsDeclared: true,
	}
}

func TestMCPShowsTheServers(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 30, 0, 0, time.UTC)
	told := ready("e")
	told.SentRoots, told.SentAt, told.Restarts = []string{"file:///b", "file:///a"}, at, 1
	told.Warnings = []string{"roots are deprecated"}
	modern := ready("m")
	modern.Modern, modern.Revision = true, "2026-07-28"
	withheld := ready("w")
	withheld.RootsDeclared = false
	failed := backend.ServerStatus{Name: "no such", Prefix: "no_such", Transport: "http", State: backend.ServerFailed, Err: errors.New("no\x1b route")}
	f := &fakeTools{status: []backend.ServerStatus{told, modern, withheld, failed, {Name: "i", Prefix: "i", Transport: "stdio", State: backend.ServerIdle}}}
	text := withTools(t, f, plant(t, nil)).ask("/mcp").text()
	for _, part := range []string{
		"MCP server **`e`** (stdio): ready\n", "- product: `e 1.0`\n- protocol: `2025-11-25`, legacy era",
		"- told 2 roots at 2026-08-01T12:30:00Z:\n  1. `file:///b`\n  2. `file:///a`\n", "- started again: 1 time\n", "- warning: roots are deprecated\n",
		"- protocol: `2026-07-28`, modern era", "told no roots: it has not asked", "told no roots: it may not ask",
		"**`no such`** (http): failed; the next use tries again", "- its tools are called `no_such.…`", `- error: ` + "`" + `"no\x1b route"`,
		"**`i`** (stdio): idle; it starts when",
	} {
		require.Contains(t, text, part)
	}
	require.Empty(t, f.log, "looking at servers starts none")
}

const oneServer = `{"mcpServers": {"db": {"command": "db", "args": ["a b"], "env": {"TOKEN": "s3cret"}}, "broken": {}}}`

func TestA25_AFoundServerIsNotStartedUntilItIsAskedFor(t *testing.T) {
	first, second := plant(t, fileTree{".mcp.json": oneServer}), plant(t, fileTree{".mcp.json": oneServer})
	f := &fakeTools{}
	c := withTools(t, f, first, second)
	text := c.ask("/mcp").text()
	require.Contains(t, text, "The session has no MCP servers.")
	require.Contains(t, text, "found, not started: /mcp start db starts it")
	require.Contains(t, text, "with the variables TOKEN")
	require.Contains(t, text, "broken: invalid, it has neither a command nor a url")
	require.Contains(t, text, "db: shadowed, an earlier root")
	require.NotContains(t, text, "s3cret")
	require.Empty(t, c.client.started)
	require.Empty(t, f.log)

	require.Contains(t, c.ask("/mcp start broken").text(), "cannot be started: it has neither")
	require.Contains(t, c.ask("/mcp start other").text(), "The roots name no MCP server `other`")
	f.status = []backend.ServerStatus{ready("db")}
	require.Contains(t, c.ask("/mcp start db").text(), "the client gave the session another one of this name")
	require.Empty(t, c.client.started)

	f.status = nil
	c.client.onStart = func(discovery.Artifact) error { f.status = []backend.ServerStatus{ready("db")}; return nil }
	require.Contains(t, c.ask("/mcp start db").text(), "MCP server **`db`** (stdio): ready")
	require.Equal(t, []string{"db"}, c.client.started)
	require.Contains(t, c.ask("/mcp").text(), "started in this session")

	c.client.onStart = func(discovery.Artifact) error { return errors.New("the user did not allow it") }
	require.Contains(t, c.ask("/mcp start db").text(), "This did not work: the user did not allow it.")
	require.Contains(t, c.ask("/mcp stop db").text(), "/mcp start NAME")
}

func TestMCPToolsListsWhatServersOffer(t *testing.T) {
	f := &fakeTools{
		status: []backend.ServerStatus{ready("e"), {Name: "x", Prefix: "x", Transport: "stdio", State: backend.ServerFailed, Err: errors.New("gone")}, ready("n")},
		tools: []backend.Tool{{
			Name: "e.echo", Server: "e", Description: "Echoes\nit", Input: backend.Raw(`{ "type": "object" }`), Hints: backend.Hints{ReadOnly: true, OpenWorld: true},
		}},
		prompts: []backend.Prompt{{Name: "e.greet", Server: "e", Arguments: []backend.PromptArgument{{Name: "who", Required: true}, {Name: "how"}}}},
	}
	a := withTools(t, f, plant(t, nil)).ask("/mcp tools")
	require.Equal(t, []string{
		"/call e.echo: Echoes it", "  it claims that it changes nothing and reaches out", `  input: {"type":"object"}`,
		"/e.greet who [how]", "resource demo://x: A thing",
	}, a.lines())
	require.Contains(t, a.text(), "MCP server **`e`** says that it has:")
	require.Contains(t, a.text(), "- error: `gone`")
	require.Contains(t, a.text(), "MCP server **`n`** says that it has:\n\nNothing.")
	require.Equal(t, "Prompt of MCP server e", announced(a.updates)["e.greet"]["description"])
	require.Contains(t, open(t, Options{}, plant(t, nil)).ask("/mcp tools").text(), "The session has no MCP servers.")
}

func TestPromptsAreAnnouncedOnceAllServersAreReady(t *testing.T) {
	f := &fakeTools{
		status:  []backend.ServerStatus{ready("e"), {Name: "i", Prefix: "i", State: backend.ServerIdle}},
		prompts: []backend.Prompt{{Name: "e.greet", Server: "e", Description: "Greets.", Arguments: []backend.PromptArgument{{Name: "who"}}}, {Name: "find"}},
	}
	c := withTools(t, f, plant(t, nil))
	require.Nil(t, announced(c.ask("/roots").updates))
	require.Empty(t, f.log, "none is started for it")
	f.status = f.status[:1]
	all := announced(c.ask("/roots").updates)
	require.Equal(t, "Prompt of MCP server e: Greets.", all["e.greet"]["description"])
	require.Equal(t, map[string]any{"hint": "[who]"}, all["e.greet"]["input"])
	require.Len(t, all, len(commands())+1)
	c.ask("/roots")
	require.Equal(t, []string{"prompts"}, f.log)
	c.ask("/call e.x")
	require.Equal(t, []string{"prompts", "call e.x ", "prompts"}, f.log, "a call may have changed them")
}

func TestCall(t *testing.T) {
	f := &fakeTools{status: []backend.ServerStatus{ready("e")}}
	c := withTools(t, f, plant(t, nil))
	for _, one := range []struct {
		name   string
		result backend.ToolResult
		lines  []string
		says   string
	}{
		{"text", backend.ToolResult{Content: []backend.Raw{blockOf("a\nb"), blockOf("")}}, []string{"a", "b"}, "The tool `e.t` gave:"},
		{"an error", backend.ToolResult{Failed: true, Content: []backend.Raw{blockOf("no")}}, []string{"no"}, "The tool `e.t` reports an error:"},
		{"nothing", backend.ToolResult{}, nil, "The tool `e.t` gave, and nothing with it."},
		{"structure", backend.ToolResult{Structured: backend.Raw(`{"a":1}`), Truncated: true}, []string{`{"a":1}`}, "Cut: the tool gave more"},
		{"an image", backend.ToolResult{Content: []backend.Raw{backend.Raw(`{"type":"image","mimeType":"image/png","data":""}`)}}, nil, "A block of type `image` (`image/png`) of 49 bytes."},
		{"a resource", backend.ToolResult{Content: []backend.Raw{backend.Raw(`{"type":"resource","resource":{"uri":"a:b","text":"t"}}`)}}, []string{"t"}, "The resource `a:b`"},
		{"a link", backend.ToolResult{Content: []backend.Raw{backend.Raw(`{"type":"resource_link","uri":"a:b"}`)}}, nil, "A link to `a:b`."},
		{"what is none", backend.ToolResult{Content: []backend.Raw{backend.Raw(`7`)}}, nil, "A block of 1 byte that cannot be read."},
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
	require.Contains(t, c.ask("/call e.t {").text(), "are no JSON: `{`")
	require.Empty(t, f.log)
}

func TestAResultIsBounded(t *testing.T) {
	f := &fakeTools{result: backend.ToolResult{Content: []backend.Raw{blockOf(strings.Repeat("x", 500)), blockOf("later")}}}
	c := open(t, Options{MaxBytes: 100}, plant(t, nil))
	c.client.tools = f
	a := c.ask("/call e.t")
	require.Equal(t, []string{strings.Repeat("x", 100)}, a.lines())
	require.Contains(t, a.text(), "Cut: an answer holds 100 bytes, and this has 500 bytes.")
	require.Contains(t, a.text(), "Cut: an answer holds 100 bytes, and this has 5 bytes.")
}

func TestACallThatFailsSaysWhy(t *testing.T) {
	f := &fakeTools{status: []backend.ServerStatus{ready("e")}}
	c := withTools(t, f, plant(t, nil))
	f.err = &backend.UnknownNameError{Kind: "tool", Name: "e.t"}
	require.Contains(t, c.ask("/call e.t").text(), "have no tool e.t. `/mcp tools` lists what they have.")
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

func TestAPromptOfAServerIsACommand(t *testing.T) {
	f := &fakeTools{
		status: []backend.ServerStatus{ready("e")},
		prompts: []backend.Prompt{
			{Name: "e.greet", Server: "e", Remote: "greet", Arguments: []backend.PromptArgument{{Name: "who", Required: true}, {Name: "how"}}},
			{Name: "e.plain", Server: "e", Remote: "plain"},
		},
	}
	c := withTools(t, f, plant(t, nil))
	for text, asked := range map[string]string{
		"/e.greet Ann with  care":                  `prompt e.greet map[how:with  care who:Ann]`,
		"/e.greet Ann":                             `prompt e.greet map[who:Ann]`,
		`/e.greet {"who": "A B", "how": "kindly"}`: `prompt e.greet map[how:kindly who:A B]`,
		"/e.plain":                                 `prompt e.plain map[]`,
	} {
		f.log = nil
		a := c.ask(text)
		require.Contains(t, f.log, asked)
		require.Equal(t, []string{"Be nice."}, a.lines())
		require.Contains(t, a.text(), "of MCP server `e`. This is what the server says, not you.", "A30")
	}
	f.log = nil
	require.Contains(t, c.ask("/e.greet").text(), "it needs `who`. It is called by `/e.greet who [how]`.")
	require.Contains(t, c.ask("/e.plain x").text(), "it takes no arguments")
	require.Contains(t, c.ask("/e.greet {").text(), "is no JSON object of texts")
	require.Contains(t, c.ask("/e.other").text(), "have no prompt e.other")
	require.Contains(t, c.ask("/x.other").text(), "There is no command")
	require.NotContains(t, strings.Join(f.log, "\n"), "prompt e")
	f.err = errors.New("it ended")
	require.Contains(t, c.ask("/e.plain").text(), "This did not work: it ended.")
}

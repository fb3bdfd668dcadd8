package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/discovery"
)

// fakeTools are MCP servers that answer at once.
type fakeTools struct {
	backend.Tools
	status []mcp.Status
	tools  []mcp.Tool         // of the server called e
	late   <-chan mcp.Listing // what List returns, if not nil
	result backend.ToolResult
	err    error
	// what was asked for, in order
	log []string
}

func (f *fakeTools) Servers() []mcp.Status { return f.status }

func (f *fakeTools) List(context.Context) (<-chan mcp.Listing, error) {
	f.log = append(f.log, "list")
	if f.late != nil {
		return f.late, nil
	}
	listings := make(chan mcp.Listing, len(f.status))
	defer close(listings)
	for _, s := range f.status {
		l := mcp.Listing{Status: s}
		if s.Name == "e" {
			l.Tools, l.Resources = f.tools,
				[]mcp.Resource{{URI: "demo://x", Description: "A thing"}}
			l.Cut = []string{"The server lists more tools than the first 1"}
		}
		listings <- l
	}
	return listings, nil
}

func (f *fakeTools) ReadResource(
	_ context.Context, server, uri string,
) (backend.ToolResult, error) {
	f.log = append(f.log, "read "+server+" "+uri)
	return f.result, f.err
}

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
	c := open(t, limits{}, roots...)
	c.client.tools = f
	return c
}

func ready(name string) mcp.Status {
	return mcp.Status{
		Name: name, Prefix: name, Transport: "stdio", State: mcp.Ready, Product: name +
			" 1.0", Revision: "2025-11-25", RootsDeclared: true,
	}
}

func TestMCP(t *testing.T) {
	told := ready("e")
	told.SentRoots, told.Restarts = []string{"file:///b", "file:///a"}, 1
	told.Warnings = []string{"roots are deprecated"}
	modern := ready("m")
	modern.Revision = "2026-07-28"
	withheld := ready("w")
	withheld.RootsDeclared = false
	failed := mcp.Status{Name: "no such", Prefix: "no_such", Transport: "http",
		State: mcp.Failed, Err: errors.New("no\x1b route")}
	f := &fakeTools{status: []mcp.Status{told, modern, withheld, failed,
		{Name: "i", Prefix: "i", Transport: "stdio", State: mcp.Idle}}}
	text := withTools(t, f, plant(t, nil)).ask("/mcp").text()
	for _, part := range []string{
		"MCP server **`e`** (stdio): ready\n",
		"- product: `e 1.0`\n- protocol: `2025-11-25`\n",
		"- received 2 roots:\n  1. `file:///b`\n  2. `file:///a`\n",
		"- restarted: 1 time\n", "- warning: roots are deprecated\n",
		"- protocol: `2026-07-28`\n", "received no roots: it has not requested",
		"received no roots: it may not request",
		"**`no such`** (http): failed; it is tried again when it is next used",
		"- its tools are called `no_such.…`", `- error: ` + "`" + `"no\x1b route"`,
		"**`i`** (stdio): idle; it starts when",
	} {
		require.Contains(t, text, part)
	}
	require.Empty(t, f.log, "looking at servers starts none")
}

const oneServer = `{"mcpServers": {"db": {"command": "db", "args": ["a b"], "env": {"TOKEN": ` +
	`"s3cret"}, "envFile": ".env"}, "broken": {}}}`

// Clause A25.
func TestMCPStart(t *testing.T) {
	first, second := plant(t, fileTree{".mcp.json": oneServer}),
		plant(t, fileTree{".mcp.json": oneServer})
	f := &fakeTools{}
	c := withTools(t, f, first, second)
	text := c.ask("/mcp").text()
	require.Contains(t, text, "The session has no MCP servers.")
	require.Contains(t, text, "not started: /mcp start db starts it")
	require.Contains(t, text, "with the variables TOKEN\n  with the variables in the file .env\n")
	require.Contains(t, text, "broken: invalid, it has neither a command nor a url")
	require.Contains(t, text, "db: shadowed, an earlier folder")
	require.NotContains(t, text, "s3cret")
	require.Empty(t, c.client.started)
	require.Empty(t, f.log)
	const unstarted = "`/mcp` shows those that the folders configure and that are not started."
	require.Contains(t, c.ask("/mcp tools").text(), "The session has no MCP servers. "+unstarted)
	f.err = &mcp.UnknownNameError{Kind: "server named", Name: "db"}
	require.Contains(t, c.ask("/mcp read db a:b").text(),
		"have no server named db. `/mcp tools` lists what they offer. "+unstarted)
	require.Contains(t, c.ask("/call db.t").text(), unstarted)

	require.Contains(t, c.ask("/mcp start broken").text(), "cannot be started: it has neither")
	require.Contains(t, c.ask("/mcp start other").text(),
		"No folder configures an MCP server called `other`")
	f.status = []mcp.Status{ready("db")}
	require.Contains(t, c.ask("/mcp start db").text(),
		"the client provides another server with this name")
	require.Empty(t, c.client.started)

	f.status = nil
	c.client.onStart = func(a discovery.Artifact) error {
		found := ready("db")
		found.File = a.Path
		f.status = []mcp.Status{found}
		return nil
	}
	require.Contains(t, c.ask("/mcp start db").text(), "MCP server **`db`** (stdio): ready")
	require.Equal(t, []string{"db"}, c.client.started)
	require.Contains(t, c.ask("/mcp").text(), "started in this session")
	require.NotContains(t, c.ask("/call db.t").text(), unstarted)

	c.client.onStart = func(discovery.Artifact) error {
		return errors.New("the user did not allow it")
	}
	require.Contains(t, c.ask("/mcp start db").text(),
		"This did not work: the user did not allow it.")
	require.Contains(t, c.ask("/mcp stop db").text(), "/mcp start NAME")
}

func TestMCPTools(t *testing.T) {
	f := &fakeTools{
		status: []mcp.Status{ready("e"), {Name: "x", Prefix: "x", Transport: "stdio",
			State: mcp.Failed, Err: errors.New("gone")}, ready("n")},
		tools: []mcp.Tool{{
			Name: "e.echo", Server: "e", Description: "Echoes\nit",
			Input: backend.Raw(`{ "type": "object" }`),
			Hints: mcp.Hints{ReadOnly: true, OpenWorld: true},
		}},
	}
	a := withTools(t, f, plant(t, nil)).ask("/mcp tools")
	require.Equal(t, []string{
		"/call e.echo: Echoes it", "  according to its server it only reads and contacts other " +
			"systems", `  input: {"type":"object"}`,
		"resource demo://x: A thing",
	}, a.lines())
	require.Contains(t, a.text(), "MCP server **`e`** offers:")
	require.Contains(t, a.text(), "- error: `gone`")
	require.Contains(t, a.text(), "MCP server **`n`** offers nothing.")
	require.Contains(t, a.text(), "The server lists more tools than the first 1.\n")
	require.Contains(t, open(t, limits{}, plant(t, nil)).ask("/mcp tools").text(),
		"The session has no MCP servers.")
}

func TestMCPToolsOfOneServerLeaveRoomForOthers(t *testing.T) {
	f := &fakeTools{status: []mcp.Status{ready("e"), ready("e")}}
	f.status[1].Prefix = "e2"
	for i := range 20 {
		f.tools = append(f.tools, mcp.Tool{Name: fmt.Sprintf("e.tool%02d", i), Server: "e",
			Description: "Does it", Input: backend.Encode(strings.Repeat("x", 100))})
	}
	c := open(t, limits{bytes: 2000}, plant(t, nil))
	c.client.tools = f
	text := c.ask("/mcp tools").text()
	require.Equal(t, 2, strings.Count(text, "/call e.tool19: Does it\n"), text)
	require.Equal(t, 2, strings.Count(text, "The list is long: the arguments of the tools are left out.\n"))
	require.NotContains(t, text, "xxx")

	c = open(t, limits{bytes: 600}, plant(t, nil))
	c.client.tools = f
	text = c.ask("/mcp tools").text()
	require.Equal(t, 2, strings.Count(text, "/call e.tool00: Does it\n"), text)
	require.Equal(t, 2, strings.Count(text, "long; the limit for an answer is 600 bytes."))

	listings := make(chan mcp.Listing, 1)
	listings <- mcp.Listing{Status: ready("e"),
		Resources: []mcp.Resource{{URI: "a:" + strings.Repeat("b", 200)}}}
	close(listings)
	c = open(t, limits{bytes: 100}, plant(t, nil))
	c.client.tools = &fakeTools{status: []mcp.Status{ready("e")}, late: listings}
	text = c.ask("/mcp tools").text()
	require.Contains(t, text, "resource a:bbb")
	require.NotContains(t, text, "what the tools take")
}

// Clause M4.
func TestMCPToolsShowsWhatIsKnown(t *testing.T) {
	starting := mcp.Status{Name: "slow", Prefix: "slow", Transport: "http",
		State: mcp.Starting, Waiting: "it has not answered yet"}
	broken := mcp.Status{Name: "broken", Prefix: "broken", Transport: "stdio",
		State: mcp.Waiting,
		Err:   errors.New("exit status 3")}
	listings := make(chan mcp.Listing)
	f := &fakeTools{status: []mcp.Status{starting, ready("e"), broken}, late: listings}
	c := open(t, limits{waiting: time.Millisecond}, plant(t, nil))
	c.client.tools = f
	said := make(chan string, 1000)
	c.client.onUpdate = func(u update) error {
		said <- u.text()
		return nil
	}
	answered := make(chan answer, 1)
	go func() { answered <- c.ask("/mcp tools") }()
	waitFor := func(text string) {
		for all := ""; !strings.Contains(all, text); {
			select {
			case more := <-said:
				all += more
			case <-time.After(30 * time.Second):
				require.Contains(t, all, text)
			}
		}
	}
	waitFor("Waiting for:\n\n- `slow`: it has not answered yet\n- `e`: it has not listed what it " +
		"offers\n- `broken`: waiting; it ended and will be restarted: `exit status 3`")
	listings <- mcp.Listing{Status: ready("e"),
		Tools: []mcp.Tool{{Name: "e.echo", Server: "e"}}}
	waitFor("/call e.echo") // while the others are still to come
	listings <- mcp.Listing{Status: broken}
	waitFor("- error: `exit status 3`")
	close(listings)
	<-answered
}

func TestMCPInstructions(t *testing.T) {
	s := ready("e")
	s.Instructions = "Call `echo` first.\n\x1b[31m```"
	text := withTools(t, &fakeTools{status: []mcp.Status{s}},
		plant(t, nil)).ask("/mcp").text()
	require.Contains(t, text, "- instructions of the server:\n\n````text\nCall `echo` first.\n")
	require.NotContains(t, text, "\x1b")
}

func TestMCPRead(t *testing.T) {
	f := &fakeTools{
		result: backend.ToolResult{Content: []backend.Raw{
			backend.Raw(`{"type":"resource","resource":{"uri":"mem://a","text":"the content"}}`)}}}
	c := withTools(t, f, plant(t, nil))
	a := c.ask("/mcp read my server mem://a")
	require.Equal(t, []string{"read my server mem://a"}, f.log)
	require.Contains(t, a.text(), "MCP server `my server` returned:")
	require.Equal(t, []string{"the content"}, a.lines())
	require.Contains(t, c.ask("/mcp read e").text(), "/mcp read SERVER URI")
	f.err = &mcp.UnknownNameError{Kind: "server named", Name: "x"}
	require.Contains(t, c.ask("/mcp read x a:b").text(),
		"have no server named x. `/mcp tools` lists what they offer.")
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
	f.tools = []mcp.Tool{{Name: "e.t", Hints: mcp.Hints{Unstated: true}}}
	a = c.ask("/mcp tools")
	require.Contains(t, a.text(), "prompt /e:review file [style]: Reviews.")
	announced := a.updates[0]
	require.Equal(t, "available_commands_update", announced.Kind)
	last := announced.Commands[len(announced.Commands)-1]
	require.Equal(t, "e:review", last["name"])
	require.Equal(t, "Prompt of MCP server \"e\": Reviews.", last["description"])
	require.Equal(t, map[string]any{"hint": "file [style]"}, last["input"])

	f.err = &mcp.UnknownNameError{Kind: "prompt", Name: "x:y"}
	require.Contains(t, c.ask("/x:y").text(), "have no prompt x:y")
}

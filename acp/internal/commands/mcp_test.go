package commands_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
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

// chat answers /mcp in a session with the MCP servers of a test. It is also the client.
type chat struct {
	backend.Host
	t         *testing.T
	workspace *workspace.Workspace
	catalog   *discovery.Catalog
	tools     *fakeTools
	bound     int
	start     func(discovery.Artifact) error // nil if none may be started
	said      chan string                    // gets each chunk, if it is not nil

	mu   sync.Mutex
	text string // of the answer
}

func (c *chat) Workspace() *workspace.Workspace { return c.workspace }
func (c *chat) Catalog() *discovery.Catalog     { return c.catalog }
func (c *chat) Tools() backend.Tools            { return c.tools }

func (c *chat) Update(_ context.Context, u backend.Update) error {
	chunk := backend.ChunkText(u)
	if c.said != nil {
		c.said <- chunk
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text += chunk
	return nil
}

// chatWith opens the roots, or an empty one.
func chatWith(t *testing.T, f *fakeTools, roots ...string) *chat {
	if roots == nil {
		roots = []string{dirtest.New(t)}
	}
	w := roottest.Open(t, roots[0], roots[1:]...)
	catalog, err := discovery.Scan(t.Context(), w)
	require.NoError(t, err)
	return &chat{t: t, workspace: w, catalog: catalog, tools: f, bound: commands.MaxBytes}
}

// ask returns the answer to /mcp with an argument.
func (c *chat) ask(argument string) string {
	c.text = ""
	r := commands.NewReply(c.t.Context(), c, c.bound)
	m := commands.MCP{Reply: r, Name: "mcp", Host: func() backend.Host { return c },
		Start: func(_ context.Context, a discovery.Artifact) error { return c.start(a) }}
	_, err := r.Finish(m.Answer(c.t.Context(), argument))
	require.NoError(c.t, err)
	return c.text
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
	text := chatWith(t, f).ask("")
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
	first, second := dirtest.Tree{".mcp.json": oneServer}.Plant(t),
		dirtest.Tree{".mcp.json": oneServer}.Plant(t)
	f := &fakeTools{}
	c := chatWith(t, f, first, second)
	said := c.ask("")
	require.Contains(t, said, "The session has no MCP servers.")
	require.Contains(t, said, "not started: /mcp start db starts it")
	require.Contains(t, said, "with the variables TOKEN\n  with the variables in the file .env\n")
	require.Contains(t, said, "broken: invalid, it has neither a command nor a url")
	require.Contains(t, said, "db: shadowed, an earlier folder")
	require.NotContains(t, said, "s3cret")
	require.Empty(t, f.log)
	const unstarted = "`/mcp` shows those that the folders configure and that are not started."
	require.Contains(t, c.ask("tools"), "The session has no MCP servers. "+unstarted)
	f.err = &mcp.UnknownNameError{Kind: "server named", Name: "db"}
	require.Contains(t, c.ask("read db a:b"),
		"have no server named db. `/mcp tools` lists what they offer. "+unstarted)

	require.Contains(t, c.ask("start broken"), "cannot be started: it has neither")
	require.Contains(t, c.ask("start other"), "No folder configures an MCP server called `other`")
	f.status = []mcp.Status{ready("db")}
	require.Contains(t, c.ask("start db"), "the client provides another server with this name")

	f.status = nil
	c.start = func(a discovery.Artifact) error {
		found := ready("db")
		found.File = a.Path
		f.status = []mcp.Status{found}
		return nil
	}
	require.Contains(t, c.ask("start db"), "MCP server **`db`** (stdio): ready")
	require.Contains(t, c.ask(""), "started in this session")
	require.NotContains(t, c.ask("read db a:b"), unstarted)

	c.start = func(discovery.Artifact) error { return errors.New("the user did not allow it") }
	require.Contains(t, c.ask("start db"), "This did not work: the user did not allow it.")
	require.Contains(t, c.ask("stop db"), "/mcp start NAME")
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
	said := chatWith(t, f).ask("tools")
	require.Contains(t, said, "tool e.echo: Echoes it\n  according to its server it only reads and "+
		"contacts other systems\n  input: {\"type\":\"object\"}\nresource demo://x: A thing\n")
	require.Contains(t, said, "MCP server **`e`** offers:")
	require.Contains(t, said, "- error: `gone`")
	require.Contains(t, said, "MCP server **`n`** offers nothing.")
	require.Contains(t, said, "The server lists more tools than the first 1.\n")
	require.Contains(t, chatWith(t, &fakeTools{}).ask("tools"), "The session has no MCP servers.")
}

func TestMCPToolsOfOneServerLeaveRoomForOthers(t *testing.T) {
	f := &fakeTools{status: []mcp.Status{ready("e"), ready("e")}}
	f.status[1].Prefix = "e2"
	for i := range 20 {
		f.tools = append(f.tools, mcp.Tool{Name: fmt.Sprintf("e.tool%02d", i), Server: "e",
			Description: "Does it", Input: backend.Encode(strings.Repeat("x", 100))})
	}
	c := chatWith(t, f)
	c.bound = 2000
	said := c.ask("tools")
	require.Equal(t, 2, strings.Count(said, "tool e.tool19: Does it\n"), said)
	require.Equal(t, 2, strings.Count(said, "The list is long: the arguments of the tools are left out.\n"))
	require.NotContains(t, said, "xxx")

	c.bound = 600
	said = c.ask("tools")
	require.Equal(t, 2, strings.Count(said, "tool e.tool00: Does it\n"), said)
	require.Equal(t, 2, strings.Count(said, "long; the limit for an answer is 600 bytes."))

	listings := make(chan mcp.Listing, 1)
	listings <- mcp.Listing{Status: ready("e"),
		Resources: []mcp.Resource{{URI: "a:" + strings.Repeat("b", 200)}}}
	close(listings)
	c = chatWith(t, &fakeTools{status: []mcp.Status{ready("e")}, late: listings})
	c.bound = 100
	said = c.ask("tools")
	require.Contains(t, said, "resource a:bbb")
	require.NotContains(t, said, "what the tools take")
}

// Clause M4.
func TestMCPToolsShowsWhatIsKnown(t *testing.T) {
	listings := make(chan mcp.Listing)
	c := chatWith(t, &fakeTools{status: []mcp.Status{ready("slow"), ready("e")}, late: listings})
	c.said = make(chan string, 2)
	go c.ask("tools")
	listings <- mcp.Listing{Status: ready("e"), Tools: []mcp.Tool{{Name: "e.echo", Server: "e"}}}
	require.Contains(t, <-c.said, "tool e.echo", "while the other is still to come")
	listings <- mcp.Listing{Status: mcp.Status{Name: "slow", State: mcp.Starting,
		Waiting: "it has not answered yet", Err: errors.New("it is late")}}
	require.Contains(t, <-c.said, "MCP server **`slow`** (): starting; it has not answered yet\n")
	close(listings)
}

func TestMCPInstructions(t *testing.T) {
	s := ready("e")
	s.Instructions = "Call `echo` first.\n\x1b[31m```"
	text := chatWith(t, &fakeTools{status: []mcp.Status{s}}).ask("")
	require.Contains(t, text, "- instructions of the server:\n\n````text\nCall `echo` first.\n")
	require.NotContains(t, text, "\x1b")
}

func TestMCPRead(t *testing.T) {
	f := &fakeTools{
		result: backend.ToolResult{Content: []backend.Raw{
			backend.Raw(`{"type":"resource","resource":{"uri":"mem://a","text":"the content"}}`)}}}
	c := chatWith(t, f)
	said := c.ask("read my server mem://a")
	require.Equal(t, []string{"read my server mem://a"}, f.log)
	require.Contains(t, said, "MCP server `my server` returned:")
	require.Contains(t, said, "```text\nthe content\n```")
	require.Contains(t, c.ask("read e"), "/mcp read SERVER URI")
	f.err = &mcp.UnknownNameError{Kind: "server named", Name: "x"}
	require.Contains(t, c.ask("read x a:b"),
		"have no server named x. `/mcp tools` lists what they offer.")
}

package mcprelay_test

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577); servers use them

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// tick is the interval between checks for an expected event.
const tick = 20 * time.Millisecond

// from returns the command of a server from npm.
func from(command []string) process.Command {
	return process.Command{Path: command[0], Args: command[1:]}
}

// Clause M1.
func TestServerFilesystem(t *testing.T) {
	server := from(npmtest.Filesystem(t))
	dirs := folders(t, "z", "a", "m")
	p := publish(t, dirs[:2]...)
	c := connect(t, behind(p, server), options())
	allowed := func(dirs ...string) func() bool {
		return func() bool {
			text, err := c.try("list_allowed_directories")
			return err == nil && text == "Allowed directories:\n"+strings.Join(dirs, "\n")
		}
	}
	require.Eventually(t, allowed(dirs[:2]...), patience, tick)
	p.Set(snapshot(t, dirs[2], dirs[1]))
	require.Eventually(t, allowed(dirs[2], dirs[1]), patience, tick)
}

// Clause M7.
func TestTypeScriptModernServer(t *testing.T) {
	server := from(npmtest.Modern(t))
	dirs := folders(t, "z", "a", "m")
	p := publish(t, dirs[:2]...)
	c := connect(t, behind(p, server), options())
	require.Equal(t, "2026-07-28", c.InitializeResult().ProtocolVersion)
	require.Equal(t, uris(t, dirs[:2]...), c.call("roots"))
	p.Set(snapshot(t, dirs[2]))
	require.Eventually(t, func() bool { return c.call("roots") == uris(t, dirs[2]) }, patience,
		tick)
}

// runSDKServer runs a server of the MCP SDK, which in role "legacy" does not support 2026-07-28.
func runSDKServer(role string) int {
	var o mcptest.Options
	if role == "legacy" {
		o.Revision = "2025-11-25"
	}
	s := mcptest.New(o)
	asks := func(name string, questions mcp.InputRequestMap) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				p := r.Params
				if len(p.InputResponses) < len(questions) {
					state := "as it was"
					return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
				}
				return mcptest.Text(received(p)), nil
			})
	}
	where, what := &mcp.ListRootsParams{}, &mcp.ElicitParams{Message: "?",
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}
	asks("roots", mcp.InputRequestMap{"where": where})
	asks("twice", mcp.InputRequestMap{"where": where, "again": where})
	asks("both", mcp.InputRequestMap{"where": where, "what": what})
	return s.Play()
}

// received returns the answers that came with a call.
func received(p *mcp.CallToolParamsRaw) string {
	var lines []string
	for _, key := range []string{"where", "again"} {
		if list, ok := p.InputResponses[key].(*mcp.ListRootsResult); ok {
			for _, r := range list.Roots {
				lines = append(lines, r.URI)
			}
		}
	}
	if answer, ok := p.InputResponses["what"].(*mcp.ElicitResult); ok {
		lines = append(lines, answer.Action)
	}
	return strings.Join(lines, "\n")
}

// client is a client of the MCP SDK, connected through a relay.
type client struct {
	*mcp.ClientSession
	t testing.TB
}

// options returns the options of a client without roots.
func options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}}
}

// connect connects a client. roots are its own roots, which the relay must hide.
func connect(t testing.TB, c process.Command, o *mcp.ClientOptions, roots ...string) client {
	t.Helper()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stderr = os.Stderr
	sdk := mcp.NewClient(&mcp.Implementation{Name: "child", Version: "1"}, o)
	for _, uri := range roots {
		sdk.AddRoots(&mcp.Root{URI: uri})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session, err := sdk.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return client{session, t}
}

// try calls a tool.
func (c client) try(name string) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	result, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
	if err != nil {
		return "", err
	}
	var texts []string
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

func (c client) call(name string) string {
	c.t.Helper()
	text, err := c.try(name)
	require.NoError(c.t, err)
	return text
}

// Clauses M1, M7.
func TestGoSDKServers(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		for name, wrong := range map[string][]string{"without roots": nil,
			"with a wrong one": {"file:///wrong"}} {
			t.Run(era+"/"+name, func(t *testing.T) {
				dirs := folders(t, "z", "a", "with space", "m")
				p := publish(t, dirs[:3]...)
				o := options()
				if wrong != nil {
					o = &mcp.ClientOptions{}
				}
				c := connect(t, behind(p, self(era)), o, wrong...)
				require.Equal(t, uris(t, dirs[:3]...), c.call("roots"))
				p.Set(snapshot(t, dirs[3], dirs[0]))
				require.Eventually(t, func() bool {
					return c.call("roots") == uris(t, dirs[3], dirs[0])
				}, patience, tick)
				require.NoError(t, c.Close())
			})
		}
	}
}

// Clause M7.
func TestTwoRequestsInOneResult(t *testing.T) {
	dirs := folders(t, "z", "a")
	c := connect(t, behind(publish(t, dirs...), self("modern")), options())
	require.Equal(t, uris(t, dirs...)+"\n"+uris(t, dirs...), c.call("twice"))
}

// Clause M7.
func TestClientAnswersOtherRequests(t *testing.T) {
	dirs := folders(t, "z", "a")
	o := options()
	asked := make(chan struct{}, 10)
	o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- struct{}{}
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	c := connect(t, behind(publish(t, dirs...), self("modern")), o)
	require.Equal(t, uris(t, dirs...)+"\ndecline", c.call("both"))
	require.Len(t, asked, 1)
}

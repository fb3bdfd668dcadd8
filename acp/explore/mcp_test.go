package explore

import (
	"context"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
)

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

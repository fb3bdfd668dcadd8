package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
)

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

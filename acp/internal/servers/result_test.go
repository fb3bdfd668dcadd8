package servers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// size returns the number of bytes of text in blocks.
func size(blocks []json.RawMessage) (n int) {
	for _, b := range blocks {
		n += len(b)
	}
	return n
}

func TestErrorLength(t *testing.T) {
	h, c := mcptest.NewFake(t)
	f := newFixture(t, mcpclient.Options{}, c)
	h.Respond("tools/call", `"error":{"code":1,"message":"`+strings.Repeat("x", 512<<10)+`"}`)
	_, err := f.try("h.x", "{}")
	require.ErrorContains(t, err, "MCP server h: ")
	require.Less(t, len(err.Error()), 64<<10)
	require.Less(t, len(f.host.updates.String()), 64<<10)
	require.Less(t, len(f.logs.String()), 64<<10)
}

func TestManySmallBlocks(t *testing.T) {
	const limit = 10_000
	h, c := mcptest.NewFake(t)
	f := newFixture(t, mcpclient.Options{})
	f.Limit(limit, limit/10)
	f.change(roottest.Open(t, folder(t)), c)
	for _, block := range []string{`{"type":"image","data":"","mimeType":""}`, `{"type":"text","text":""}`} {
		h.Respond("tools/call", `"result":{"content":[`+strings.Repeat(block+",", 5_000)+block+`]}`)
		result, err := f.Call(t.Context(), f.host, backend.ToolRequest{Name: "h.x"})
		require.NoError(t, err)
		require.Regexp(t, "^The result is [0-9]+ bytes long; the limit is 10000 bytes$", result.Cut)
		require.Less(t, size(result.Content), limit+1000, block)
		require.Less(t, len(f.host.updates.String()), limit, block)
	}
}

// Content that cannot be read becomes a text that says why, for the model and the client.
func TestUnknownContentBlocks(t *testing.T) {
	h, c := mcptest.NewFake(t)
	f := newFixture(t, mcpclient.Options{}, c)
	for block, why := range map[string]string{
		`{"type":"hologram","depth":3}`: "unrecognized content type", `{"text":"x"}`: "unrecognized content type",
		`{"type":"image","data":"!","mimeType":"image/png"}`: "illegal base64 data", `7`: "wrong type",
	} {
		h.Respond("tools/call", `"result":{"content":[{"type":"text","text":"first"},`+block+`]}`)
		result, err := f.Call(t.Context(), f.host, backend.ToolRequest{Name: "h.x"})
		require.NoError(t, err)
		require.Len(t, result.Content, 2)
		require.Contains(t, string(result.Content[0]), "first")
		require.Contains(t, string(result.Content[1]), why)
		require.Contains(t, f.host.updates.String(), why)
	}
}

// What a server says is for the user reaches the user, and not the model.
func TestBlocksForTheUser(t *testing.T) {
	const note = "[The server shows this result to the user only.]"
	block := func(audience string) string {
		return `{"type":"text","text":"tangerine","annotations":{"audience":` + audience + `}}`
	}
	const plain = `{"type":"text","text":"plain"}`
	for name, c := range map[string]struct{ result, want string }{
		"for the user":           {`"content":[` + block(`["user"]`) + `,` + plain + `]`, "plain"},
		"for the user, twice":    {`"content":[` + block(`["user","user"]`) + `,` + plain + `]`, "plain"},
		"only for the user":      {`"content":[` + block(`["user"]`) + `]`, note},
		"for the model":          {`"content":[` + block(`["assistant"]`) + `]`, "tangerine"},
		"for both":               {`"content":[` + block(`["user","assistant"]`) + `]`, "tangerine"},
		"for nobody":             {`"content":[` + block(`[]`) + `]`, "tangerine"},
		"for somebody":           {`"content":[` + block(`["developer"]`) + `]`, "tangerine"},
		"an image":               {`"content":[{"type":"image","data":"AAAA","mimeType":"image/png","annotations":{"audience":["user"]}},` + plain + `]`, "plain"},
		"a link":                 {`"content":[{"type":"resource_link","uri":"x:tangerine","name":"x","annotations":{"audience":["user"]}},` + plain + `]`, "plain"},
		"a resource":             {`"content":[{"type":"resource","resource":{"uri":"x:tangerine","text":"a"},"annotations":{"audience":["user"]}},` + plain + `]`, "plain"},
		"data beside its text":   {`"content":[` + block(`["user"]`) + `],"structuredContent":{"x":1}`, ""},
		"the text says the data": {`"content":[{"type":"text","text":"{\"x\":1}","annotations":{"audience":["user"]}}],"structuredContent":{"x":1}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, config := mcptest.NewFake(t)
			f := newFixture(t, mcpclient.Options{}, config)
			h.Respond("tools/call", `"result":{`+c.result+`}`)
			result, err := f.Call(t.Context(), f.host, backend.ToolRequest{Name: "h.x"})
			require.NoError(t, err)
			require.Equal(t, c.want, textOf(result.Content))
			if c.want == "" {
				require.JSONEq(t, `{"x":1}`, string(result.Structured))
			} else {
				require.Len(t, result.Content, 1)
			}
			if name == "an image" {
				require.Contains(t, f.host.updates.String(), "AAAA")
			} else if name != "the text says the data" {
				require.Contains(t, f.host.updates.String(), "tangerine")
			}
		})
	}
}

// What a result has as data reaches the user beside its text, unless the text says the same.
func TestDataBesideText(t *testing.T) {
	for text, want := range map[string]string{
		`six`:                         `{"x":[1,"a"],"y":6}`,
		`{"y":6}`:                     `{"x":[1,"a"],"y":6}`,
		`{"y": 6.0, "x": [1, "a"]}`:   ``,
		`{\"y\":6,\n\"x\":[1,\"a\"]}`: ``,
	} {
		t.Run(text, func(t *testing.T) {
			h, c := mcptest.NewFake(t)
			f := newFixture(t, mcpclient.Options{}, c)
			if !strings.Contains(text, `\`) {
				text = strings.ReplaceAll(text, `"`, `\"`)
			}
			h.Respond("tools/call", `"result":{"content":[{"type":"text","text":"`+text+
				`"}],"structuredContent":{"y":6,"x":[1,"a"]}}`)
			result, err := f.Call(t.Context(), f.host, backend.ToolRequest{Name: "h.x"})
			require.NoError(t, err)
			require.Len(t, result.Content, 1)
			if want == "" {
				require.Empty(t, result.Structured)
			} else {
				require.JSONEq(t, want, string(result.Structured))
			}
		})
	}
}

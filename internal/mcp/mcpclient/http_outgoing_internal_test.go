package mcpclient

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

// Clause M7.
func TestHeadersRepeatTheMessage(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	schema := json.RawMessage(`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"n":{"type":"integer","x-mcp-header":"N"},` +
		`"b":{"type":"boolean","x-mcp-header":"B"},"in":{"properties":{"deep":{"x-mcp-header":"Deep"}}},"plain":{"type":"string"}}}`)
	for name, c := range map[string]struct {
		method, params, connection string
		want                       map[string]string
	}{
		"initialize":      {"initialize", `{}`, "2025-06-18", nil},
		"legacy":          {"tools/call", `{"name":"x","arguments":{"a":"1"}}`, "2025-06-18", map[string]string{"Mcp-Protocol-Version": "2025-06-18"}},
		"notification":    {"notifications/cancelled", `{}`, "2026-07-28", map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "notifications/cancelled"}},
		"before the rest": {"server/discover", `{` + meta + `}`, "", map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}},
		"resource": {"resources/read", `{"uri":"mem://a","name":"no",` + meta + `}`, "", map[string]string{
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/read", "Mcp-Name": "mem://a"}},
		"call": {"tools/call", `{"name":"x","arguments":{"a":"1 2","n":-7,"b":true,"in":{"deep":"d"},"plain":"p"},` + meta + `}`, "", map[string]string{
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "x",
			"Mcp-Param-A": "1 2", "Mcp-Param-N": "-7", "Mcp-Param-B": "true", "Mcp-Param-Deep": "d"}},
		"encoded": {"tools/call", `{"name":"x","arguments":{"a":"ü","in":{"deep":" d"}},` + meta + `}`, "", map[string]string{
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "x",
			"Mcp-Param-A": "=?base64?w7w=?=", "Mcp-Param-Deep": "=?base64?IGQ=?="}},
		"looks encoded": {"tools/call", `{"name":"x","arguments":{"a":"=?base64?YQ==?="},` + meta + `}`, "", map[string]string{
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "x", "Mcp-Param-A": "=?base64?PT9iYXNlNjQ/WVE9PT89?="}},
		"not as headers": {"tools/call", `{"name":"x","arguments":{"a":null,"n":1.5,"b":[],"in":7},` + meta + `}`, "", map[string]string{
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "x"}},
		"too large": {"tools/call", `{"name":"x","arguments":{"n":9007199254740993},` + meta + `}`, "", map[string]string{
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.WithValue(t.Context(), schemaKey{}, schema)
			out, err := newOutgoing(ctx, &jsonrpc.Request{Method: c.method, Params: json.RawMessage(c.params)})
			require.NoError(t, err)
			got, want := http.Header{}, http.Header{}
			out.setHeaders(got, c.connection)
			for name, value := range c.want {
				want.Set(name, value)
			}
			require.Equal(t, want, got)
		})
	}
}

package mcpserver

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecodeMessage(t *testing.T) {
	const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	for raw, want := range map[string]incoming{
		`{"jsonrpc":"2.0","id":1,"result":{}}`: {},
		call(1, "read_file", `{}`):             {},
		callModern(1, `{}`, "search", `{}`, ""): {
			modern: "2026-07-28"},
		`{"jsonrpc":"2.0","id":1,"method":"other","params":{` + modernMeta + `}}`: {modern: "2026-07-28"},

		// the SDK reads only names in their own case
		`{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
			`"params":{"name":"write_file","NAME":7}}`: {},
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `,"_META":{}}}`: {
			modern: "2026-07-28"},

		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`: {
			problem: "the params of tools/call are malformed: params cannot be of type array"},
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":true}}`: {
			problem: "the params of prompts/get are malformed: name cannot be of type bool"},
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":1}}}`: {
			problem: "the params of initialize are malformed: clientInfo.name cannot be of type " +
				"number"},
	} {
		m, err := decodeMessage([]byte(raw))
		require.NoError(t, err, raw)
		want.Message, want.request = m.Message, m.request
		require.Equal(t, want, m, raw)
	}
}

func TestHTTPBodyMustBeJSON(t *testing.T) {
	s := overHTTP(t, Options{})
	for _, body := range []string{
		"[" + call(1, "list_roots", `{}`) + "," + call(2, "list_roots", `{}`) + "] more",
		call(1, "list_roots", `{}`) + " more",
	} {
		r, err := http.Post(s.URL, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		answer, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusBadRequest, r.StatusCode)
		require.Contains(t, string(answer), "-32700")
	}
}

package runner

import (
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
)

func TestParseServers(t *testing.T) {
	t.Setenv("RUNNER_TEST", "value")
	servers, err := parseServers([]byte("\ufeff" + `{"mcpServers": {
		"z": {"command": "c", "args": ["${RUNNER_TEST}", "${env:RUNNER_TEST}s", "${NO_SUCH:-x}", "${roots}", "${root:0}"], "env": {"B": "1", "A": "2"}, "disabled": false},
		"a": {"url": "http://h"},
		"off": {"command": "c", "disabled": true},
		"s": {"type": "sse", "url": "http://s", "headers": {"H": "v"}},
		"t": {"transport": "sse", "serverUrl": "http://t"}
	}, "other": 1}`))
	require.NoError(t, err)
	require.Equal(t, []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{Name: "z", Command: "c",
			Args: []string{"value", "values", "x", "${roots}", "${root:0}"},
			Env:  []sdk.EnvVariable{{Name: "A", Value: "2"}, {Name: "B", Value: "1"}}}},
		{Http: &sdk.McpServerHttpInline{Name: "a", Url: "http://h", Headers: []sdk.HttpHeader{},
			Type: "http"}},
		{Sse: &sdk.McpServerSseInline{Name: "s", Url: "http://s",
			Headers: []sdk.HttpHeader{{Name: "H", Value: "v"}}, Type: "sse"}},
		{Sse: &sdk.McpServerSseInline{Name: "t", Url: "http://t", Headers: []sdk.HttpHeader{}, Type: "sse"}},
	}, servers)
	for text, why := range map[string]string{
		`[]`:                        "not a JSON object",
		`{}`:                        "it has no member mcpServers; write",
		`{"mcpServers": {"a": {}}}`: "mcpServers.a: it has neither a command nor a url",
		`{"mcpServers": {"a": {"type": "carrier pigeon"}}}`:              "stdio, http and sse",
		`{"mcpServers": {"a": {"command": "c", "env": {"T": [1]}}}}`:     "mcpServers.a: its member env must not be a JSON array",
		`{"mcpServers": {"a": {"command": "c", "disabled": "true"}}}`:    "mcpServers.a: its member disabled must not be a JSON string",
		`{"mcpServers": {"a": {"command": "c", "enabled": 0}}}`:          "mcpServers.a: its member enabled must not be a JSON number",
		`{"mcpServers": {"a": {"command": "${NO_SUCH}"}}}`:               "mcpServers.a: ${NO_SUCH} is not set",
		`{"mcpServers": {"a": {"command": "c"}, "a": {"command": "d"}}}`: `mcpServers.a: the name "a" occurs twice in this file`,
	} {
		_, err := parseServers([]byte(text))
		require.ErrorContains(t, err, why, text)
	}
}

package runner

import (
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
)

func TestParseServers(t *testing.T) {
	servers, err := parseServers([]byte(`{"mcpServers": {
		"z": {"command": "c", "args": ["${X}"], "env": {"B": "1", "A": "2"}, "disabled": false},
		"a": {"url": "http://h"},
		"s": {"type": "sse", "url": "http://s", "headers": {"H": "v"}}
	}, "other": 1}`))
	require.NoError(t, err)
	require.Equal(t, []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{Name: "z", Command: "c", Args: []string{"${X}"},
			Env: []sdk.EnvVariable{{Name: "B", Value: "1"}, {Name: "A", Value: "2"}}}},
		{Http: &sdk.McpServerHttpInline{Name: "a", Url: "http://h", Headers: []sdk.HttpHeader{},
			Type: "http"}},
		{Sse: &sdk.McpServerSseInline{Name: "s", Url: "http://s",
			Headers: []sdk.HttpHeader{{Name: "H", Value: "v"}}, Type: "sse"}},
	}, servers)
	for text, why := range map[string]string{
		`[]`:                        "not a JSON object",
		`{}`:                        "mcpServers",
		`{"mcpServers": {"a": {}}}`: "mcpServers.a.command",
		`{"mcpServers": {"a": {"type": "carrier pigeon"}}}`:              "stdio, http or sse",
		`{"mcpServers": {"a": {"command": "c", "env": {"T": 1}}}}`:       "mcpServers.a.env.T",
		`{"mcpServers": {"a": {"command": "c"}, "a": {"command": "d"}}}`: `two servers called "a"`,
	} {
		_, err := parseServers([]byte(text))
		require.ErrorContains(t, err, why, text)
	}
}

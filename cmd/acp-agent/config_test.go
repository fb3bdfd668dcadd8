package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

func TestMCPPolicy(t *testing.T) {
	c, err := parseConfig("c.json",
		[]byte(`{"mcpServers": {"old": {"era": "legacy", "roots": "off"},
			"*": {"onShrink": "notify", "era": "auto"}}}`))
	require.NoError(t, err)
	require.Equal(t, acp.MCPPolicy{Legacy: true, Roots: new(false), ClientDocument: clientDocument}, c.mcpPolicy("old"))
	require.Equal(t, acp.MCPPolicy{KeepOnShrink: true, ClientDocument: clientDocument}, c.mcpPolicy("another"))
	_, err = parseConfig("c.json", []byte(`{"mcpServers": {"old": {"era": "ancient"}}}`))
	require.ErrorContains(t, err, `"ancient" must be one of: auto, legacy`)
}

func TestRegisteredClient(t *testing.T) {
	t.Setenv("TEST_CLIENT_SECRET", "tangerine")
	c, err := parseConfig("c.json", []byte(
		`{"mcpServers": {"a": {"clientId": "id", "clientSecretEnv": "TEST_CLIENT_SECRET"}}}`))
	require.NoError(t, err)
	require.Equal(t, "id", c.mcpPolicy("a").ClientID)
	require.Equal(t, "tangerine", c.mcpPolicy("a").ClientSecret)
	require.Empty(t, c.mcpPolicy("b").ClientID)
	require.Equal(t, []string{"TEST_CLIENT_SECRET"}, c.keyVariables(), "no server inherits it")
	for text, want := range map[string]string{
		`"*": {"clientId": "id"}`:                                "clientId is for one server",
		`"a": {"clientSecretEnv": "X"}`:                          "clientSecretEnv needs a clientId",
		`"a": {"clientId": "id", "clientSecretEnv": "tanger-1"}`: "not the secret itself",
	} {
		_, err := parseConfig("c.json", []byte(`{"mcpServers": {`+text+`}}`))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "tanger-1")
	}
}

// The document that authorization servers read says what acp-agent sends.
func TestClientDocument(t *testing.T) {
	content, err := os.ReadFile("../../docs/mcp-client.json")
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, json.Unmarshal(content, &document))
	require.Equal(t, clientDocument, document["client_id"])
	require.Equal(t, "none", document["token_endpoint_auth_method"])
	require.Contains(t, document["redirect_uris"], "http://127.0.0.1/callback")
	require.Contains(t, document["grant_types"], "refresh_token")
}

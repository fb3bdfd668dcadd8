package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
)

func TestMCPPolicy(t *testing.T) {
	c, err := parseConfig("c.json", []byte(`{"mcpServers": {"old": {"era": "legacy", "roots": "off"}, "*": {"onShrink": "notify", "era": "auto"}}}`))
	require.NoError(t, err)
	require.Equal(t, mcpclient.Policy{Era: mcpclient.Legacy, Roots: mcpclient.Off}, c.mcpPolicy("old"))
	require.Equal(t, mcpclient.Policy{OnShrink: mcpclient.Notify}, c.mcpPolicy("another"))
	_, err = parseConfig("c.json", []byte(`{"mcpServers": {"old": {"era": "ancient"}}}`))
	require.ErrorContains(t, err, `"ancient" must be one of: auto, legacy`)
}

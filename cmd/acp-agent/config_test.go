package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

func TestMCPPolicy(t *testing.T) {
	c, err := parseConfig("c.json",
		[]byte(`{"mcpServers": {"old": {"era": "legacy", "roots": "off"},
			"*": {"onShrink": "notify", "era": "auto"}}}`))
	require.NoError(t, err)
	require.Equal(t, acp.MCPPolicy{Legacy: true, Roots: new(false)}, c.mcpPolicy("old"))
	require.Equal(t, acp.MCPPolicy{KeepOnShrink: true}, c.mcpPolicy("another"))
	_, err = parseConfig("c.json", []byte(`{"mcpServers": {"old": {"era": "ancient"}}}`))
	require.ErrorContains(t, err, `"ancient" must be one of: auto, legacy`)
}

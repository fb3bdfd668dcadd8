package servers

import mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"

// Policy says what an MCP server may do. It comes from the user's own configuration, never from the
// client or a root. The zero value is the default.
type Policy = mcpclient.Policy

// Switch is on, off, or the default.
type Switch = mcpclient.Switch

// The positions of a Switch.
const (
	Default = mcpclient.Default
	On      = mcpclient.On
	Off     = mcpclient.Off
)

package mcp

import (
	"time"

	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// Sandbox says what a stdio server may do by itself. It is backend.Sandbox, whose comment explains
// the fields Mode, Write, Read, State, Ports, Hosts, Network, Helper, Optional, Records, Own and
// Hidden.
type Sandbox = sandbox.Settings

// Policy says what an MCP server may do. It comes from the user's own configuration, never from the
// client or a root. The zero value is the default. For a server that a file in a root configures, a
// policy can only deny: what it would grant is ignored.
type Policy struct {
	// Command and URL are what a remote peer may use under this name: a program with its arguments,
	// or the address of an http or sse server. It must send the same, and no environment.
	Command []string
	URL     string
	// Roots tells whether the server may ask for the roots. If it is nil, stdio servers and servers
	// on this machine may.
	Roots *bool
	// KeepOnShrink keeps a connection to a server that knows a root which was removed. Otherwise a
	// stdio server is restarted and others are reconnected to, because some keep such a root.
	KeepOnShrink bool
	// Templates replaces ${cwd}, ${roots}, ${root:N}, ${roots:json} and ${roots:uris} in the
	// server's arguments and environment.
	Templates bool
	// SettleAfterRoots is how long after its last answered roots/list the server counts as ready.
	// Default 100 ms.
	SettleAfterRoots time.Duration
	// SettleWithoutRoots is how long after initialized the server counts as ready if it does not
	// ask for roots. Default 500 ms.
	SettleWithoutRoots time.Duration
	// CallTimeout is how long a call may take without an answer or progress. Default 10 minutes.
	CallTimeout time.Duration
	// Sandbox restricts a stdio server to the session's roots. A restriction cannot be widened, so
	// the server is restarted when the roots change.
	Sandbox Sandbox
	// ClientID and ClientSecret identify acp-agent to the server's authorization server, where the
	// user has registered it. A ClientID that begins with https:// is the address of a document
	// about the client instead (Client ID Metadata Document). Without them acp-agent registers
	// itself.
	ClientID, ClientSecret string
	// ClientDocument is a ClientID for authorization servers that register no clients. It is used
	// only if a document is there.
	ClientDocument string
}

package servers

import (
	"time"

	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
)

// Policy says what an MCP server may do. It comes from the user's own configuration, never from the
// client or a root. The zero value is the default.
type Policy struct {
	// Roots says whether the server may ask for the roots. Default: stdio servers and servers on
	// this machine may.
	Roots Switch
	// OnShrink says what happens to a server that knows a root which the session no longer has.
	// Default: Restart.
	OnShrink OnShrink
	// Templates says whether ${cwd}, ${roots}, ${root:N}, ${roots:json} and ${roots:uris} are
	// replaced in the server's arguments and environment. Default: Off.
	Templates Switch
	// Era says which revisions of MCP are tried. Default: Negotiated.
	Era Era
	// ReadOnly says whether tools that claim to be read-only are called without asking. Default:
	// Ask.
	ReadOnly ReadOnly
	// SettleAfterRoots is how long after its last answered roots/list a server counts as ready.
	// Default 100 ms.
	SettleAfterRoots time.Duration
	// SettleWithoutRoots is how long after initialized a server that does not ask for roots counts
	// as ready. Default 500 ms.
	SettleWithoutRoots time.Duration
}

// Switch is on, off, or the default.
type Switch int

// The positions of a Switch.
const (
	Default Switch = iota
	On
	Off
)

// OnShrink says what to do with a server when its session loses a root.
type OnShrink int

// The reactions to a lost root.
const (
	// Restart restarts a stdio server and reconnects to others, because some servers keep a root
	// that they once knew.
	Restart OnShrink = iota
	// Notify only sends notifications/roots/list_changed.
	Notify
)

// Era says which revisions of MCP a server is asked for.
type Era int

// The eras.
const (
	// Negotiated asks for 2026-07-28 first, and for an older revision if the server does not have
	// it.
	Negotiated Era = iota
	// Legacy asks for the older revisions only, for servers that do not survive the question for a
	// newer one.
	Legacy
)

// ReadOnly says how tools that claim to be read-only are called.
type ReadOnly int

// The ways to call a tool that claims to be read-only.
const (
	// Ask asks the user, as for every tool.
	Ask ReadOnly = iota
	// Allow trusts the claim.
	Allow
)

// Apply makes c follow the policy. To a server that a file in a root configures, and so named,
// nothing is granted, but what the policy denies stays denied.
func (p Policy) Apply(c *mcpclient.Config) {
	if c.Found {
		p.ReadOnly, p.Templates = Ask, Off
		if p.Roots == On {
			p.Roots = Default
		}
	}
	c.Policy = mcpclient.Policy{
		Roots: mcpclient.Switch(p.Roots), KeepOnShrink: p.OnShrink == Notify,
		Templates: p.Templates == On, Legacy: p.Era == Legacy, Trusted: p.ReadOnly == Allow,
		SettleAfterRoots: p.SettleAfterRoots, SettleWithoutRoots: p.SettleWithoutRoots,
	}
}

// Package mcp has the types that describe the MCP servers of a session: what they offer, how they
// are, and what they may do.
//
// A backend gets a [Status] of each server and a [Listing] of its tools from backend.Tools, a host
// program returns a [Policy] for each name from acp.Options.MCPPolicy, and the package inside this
// module that starts the servers fills in the former and follows the latter.
package mcp

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Tool is a tool of an MCP server.
type Tool struct {
	// Name is unique in the session and stays the same while its servers do: "server.tool", of
	// letters, digits, "_", "-" and that one dot.
	Name string
	// Server is the client's name for the server, and Remote the server's name for the tool.
	Server, Remote string
	// Title and Description describe the tool in the server's words, to a person and to a model.
	Title, Description string
	// Input is the JSON schema of the arguments.
	Input json.RawMessage
	// Hints are claims of the server about the tool. They are not checked.
	Hints Hints
}

// CallTitle returns the title of a call of the tool. It begins with the server's name, so that text
// which the server chose cannot push the name out of sight.
func (t Tool) CallTitle() string {
	name := text.Name(t.Remote)
	if t.Title != "" && t.Title != t.Remote {
		name = text.Name(t.Title) + " (" + name + ")"
	}
	return "MCP server " + text.Quote(text.Truncate(t.Server, text.MaxName)) + ": " + name
}

// Hints are the annotations of an MCP tool, with the protocol's defaults for those that are absent.
type Hints struct {
	// Unstated means that the server gave no annotations, so that all others are defaults.
	Unstated bool
	// ReadOnly means that the tool changes nothing. Default false.
	ReadOnly bool
	// Destructive means that what the tool changes may be lost. Default true.
	Destructive bool
	// Idempotent means that another call with the same arguments changes nothing more. Default
	// false.
	Idempotent bool
	// OpenWorld means that the tool reaches beyond its own data, as a web search does. Default
	// true.
	OpenWorld bool
}

// Claims describes the hints, unless they are unstated, as what its server says that the tool does:
// "only reads and contacts other systems".
func (h Hints) Claims() string {
	claims := "makes changes"
	switch {
	case h.ReadOnly:
		claims = "only reads"
	case h.Destructive:
		claims = "makes changes that may destroy data"
	}
	if h.OpenWorld {
		claims += " and contacts other systems"
	}
	return claims
}

// Prompt is a prompt of an MCP server: a slash command.
type Prompt struct {
	// Name is that of the command: "server:prompt".
	Name string
	// Description is the server's own text. Hint names the arguments; optional ones are in
	// brackets.
	Description, Hint string
}

// Resource is a resource of an MCP server.
type Resource struct{ URI, Description string }

// Listing describes what an MCP server offers, and its status afterwards. If it could not list
// everything, Err says why.
type Listing struct {
	Status
	Tools     []Tool
	Resources []Resource
	// Cut says, for each list that was too long, how much is left out, as a sentence without its
	// full stop.
	Cut []string
}

// ErrClosed is returned for the servers of a session that was closed. It is backend.ErrClosed.
var ErrClosed = errors.New("session closed")

// UnknownNameError is returned for a name that no server offers.
type UnknownNameError struct {
	// Kind is "tool", "prompt" or "server named".
	Kind string
	// Name is the unknown name.
	Name string
}

func (e *UnknownNameError) Error() string {
	return "the session's MCP servers have no " + e.Kind + " " + e.Name
}

// Sandbox says what a process and its descendants may do by themselves. The zero Sandbox does not
// restrict it. Its fields:
//
//	Mode                  // backend.SandboxOff, SandboxWrite or SandboxStrict
//	Write, Read []string  // files and directories that it may also write or read: absolute, or
//	                      // beginning with "~/" or "$NAME/"; those in Write must exist
//	State []string        // the same for what it keeps; directories end with "/" and are created
//	Ports                 // if Ports.Limited is set, it may connect only to the TCP ports in
//	                      // Ports.List, a []uint16
//	Hosts                 // if Hosts.Limited is set, it may connect only to the hosts in
//	                      // Hosts.List, which can be read from JSON: ["*.example.com", "[::1]:80"]
//	Helper []string       // the command line of acp-agent that enforces Hosts for ordinary users
//	Optional bool         // start it without a sandbox where there is none, and say so
//	Records string        // the directory that remembers where restricted processes could write
//	Own []string          // acp-agent's own files, which the user is never told to grant
//	Hidden []string       // directories that it cannot read where the system lets us hide them
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

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
	SSE   Transport = "sse"
)

// State is the state of a server.
type State string

// The states.
const (
	// Idle means that the server was not needed yet.
	Idle State = "idle"
	// Starting means that it is being started or connected, or given time to read the roots.
	Starting State = "starting"
	// Ready means that it accepts calls.
	Ready State = "ready"
	// Waiting means that it ended or failed, and will be started again after a delay.
	Waiting State = "waiting"
	// Failed means that it could not be started. It is tried again when it is next needed.
	Failed State = "failed"
	// Stopped means that the session was closed or no longer has the server.
	Stopped State = "stopped"
)

// Status describes a server to a person, without its secrets.
type Status struct {
	// Name is the client's name for the server, and Prefix the beginning of the names of its tools,
	// which no other server of the session has.
	Name, Prefix string
	Transport    Transport
	// File is the path of the file in a root that configures the server, "" if the client does.
	File  string
	State State
	// Waiting says why it is still starting, such as "it has not answered yet"; otherwise it is "".
	Waiting string
	// Err is the reason why it failed or ended, nil otherwise.
	Err error
	// Restarts is how often it was started again after it failed or ended.
	Restarts int
	// Product is the name and version that the server reports, and Revision the revision of MCP
	// that it speaks. Both are "" until it was connected.
	Product, Revision string
	// Instructions are what the server says about its use.
	Instructions string
	// Prompts are those that were listed last, nil if they were not.
	Prompts []Prompt
	// RootsDeclared reports whether the server may ask for the roots.
	RootsDeclared bool
	// SentRoots are the URIs of the roots that were last sent to it, nil if it never asked.
	SentRoots []string
	// Warnings has an entry for each deprecated feature in use.
	Warnings []string
}

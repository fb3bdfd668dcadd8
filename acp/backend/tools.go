package backend

import (
	"context"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	sdk "github.com/coder/acp-go-sdk"
)

// Tools calls the MCP servers of a session. All methods except Servers start the servers that were
// not needed before. They are safe for concurrent use, and fail with [ErrClosed] once the session
// was closed.
type Tools interface {
	// Servers returns the state of each server, in the client's order.
	Servers() []ServerStatus
	// List sends what each server offers as soon as it is known, and then closes the channel. It
	// waits a limited time for servers that are starting. The entry of a server that failed or is
	// late says why. Nobody needs to receive.
	List(ctx context.Context) (<-chan Listing, error)
	// Call calls a tool, and shows the tool call to the client through u. It asks the user first,
	// unless they or their policy have allowed the tool. When ctx ends, the server is told to cancel
	// the call. The failure of a tool is not an error: see ToolResult.Failed.
	Call(ctx context.Context, u Updates, r ToolRequest) (ToolResult, error)
	// ReadResource returns the content of a resource of the server with this name, or prefix of the
	// names of its tools.
	ReadResource(ctx context.Context, server, uri string) (ToolResult, error)
	// Prompt returns the content of a prompt called "server:prompt", where server is as for
	// ReadResource. arguments are what the user typed: NAME=VALUE for each, or only the values in
	// the prompt's order.
	Prompt(ctx context.Context, name, arguments string) (ToolResult, error)
}

// NoTools is the Tools of a session without MCP servers.
type NoTools struct{}

var _ Tools = NoTools{}

// Servers implements [Tools].
func (NoTools) Servers() []ServerStatus { return nil }

// List implements [Tools].
func (NoTools) List(context.Context) (<-chan Listing, error) {
	none := make(chan Listing)
	close(none)
	return none, nil
}

// Call implements [Tools].
func (NoTools) Call(_ context.Context, _ Updates, r ToolRequest) (ToolResult, error) {
	return ToolResult{}, &UnknownNameError{Kind: "tool", Name: r.Name}
}

// ReadResource implements [Tools].
func (NoTools) ReadResource(_ context.Context, server, _ string) (ToolResult, error) {
	return ToolResult{}, &UnknownNameError{Kind: "server named", Name: server}
}

// Prompt implements [Tools].
func (NoTools) Prompt(_ context.Context, name, _ string) (ToolResult, error) {
	return ToolResult{}, &UnknownNameError{Kind: "prompt", Name: name}
}

// Tool is a tool of an MCP server.
type Tool struct {
	// Name is unique in the session and stays the same while its servers do: "server.tool", of
	// letters, digits, "_", "-" and that one dot.
	Name string
	// Server is the client's name for the server, and Remote the server's name for the tool.
	Server, Remote string
	// Title and Description describe the tool in the server's words, to a person and to a model.
	Title, Description string
	// Input and Output are JSON schemas. Output is nil if the server has none.
	Input, Output Raw
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

// ToolRequest is a call of an MCP server's tool.
type ToolRequest struct {
	Name      string // see [Tool.Name]
	Arguments Raw    // a JSON object, nil for none
	// ID is the id of a pending tool call that the client already sees, or "" if Call must show a
	// new one.
	ID sdk.ToolCallId
}

// ToolResult is the result of a tool call, or the content of a resource.
type ToolResult struct {
	// Content are content blocks of ACP, of limited total size.
	Content []Raw
	// Structured is the tool's structured result, nil if it has none or it is over the limit.
	Structured Raw
	// Failed reports that the tool has failed, as Content describes.
	Failed bool
	// Cut says how long the full result is if it was shortened, as a sentence without its full
	// stop, or "".
	Cut string
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
	ServerStatus
	Tools     []Tool
	Resources []Resource
	// Cut says, for each list that was too long, how much is left out, as a sentence without its
	// full stop.
	Cut []string
}

// ServerState is the state of an MCP server.
type ServerState string

// All states.
const (
	// ServerIdle means that the server was not needed yet.
	ServerIdle ServerState = "idle"
	// ServerStarting means that it is being started or connected, or given time to read the roots.
	ServerStarting ServerState = "starting"
	// ServerReady means that it accepts calls.
	ServerReady ServerState = "ready"
	// ServerWaiting means that it ended or failed, and will be started again after a delay.
	ServerWaiting ServerState = "waiting"
	// ServerFailed means that it could not be started. It is tried again when it is next needed.
	ServerFailed ServerState = "failed"
	// ServerPassed means that it was passed to the backend, which connects it itself.
	ServerPassed ServerState = "passed on"
	// ServerStopped means that the session was closed or no longer has the server.
	ServerStopped ServerState = "stopped"
)

// ServerStatus describes an MCP server to a person, without its secrets.
type ServerStatus struct {
	// Name is the client's name for the server, and Prefix the beginning of the names of its tools.
	Name, Prefix string
	// Transport is "stdio", "http" or "sse".
	Transport string
	// File is the path of the file in a root that configures it, "" if the client does.
	File  string
	State ServerState
	// Waiting says why it is still starting, such as "it has not answered yet"; otherwise it is "".
	Waiting string
	// Err is the reason why it failed or ended, nil otherwise.
	Err error
	// RetryAt is when a server that failed or ended may be started again, zero if it may be at any
	// time.
	RetryAt time.Time
	// Restarts is how often it was started again after it failed or ended.
	Restarts int
	// Product is the name and version that the server reports, and Revision the revision of MCP
	// that it speaks. Both are "" until it was connected. Modern reports whether the revision is
	// 2026-07-28 or later.
	Product, Revision string
	Modern            bool
	// Instructions are what the server says about its use.
	Instructions string
	// Prompts are those that were listed last, nil if they were not.
	Prompts []Prompt
	// RootsDeclared reports whether the server may ask for the roots.
	RootsDeclared bool
	// SentRoots are the URIs of the roots that were last sent to it, and SentAt is the time; nil
	// and zero if it never asked.
	SentRoots []string
	SentAt    time.Time
	// Warnings has an entry for each deprecated feature in use.
	Warnings []string
}

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

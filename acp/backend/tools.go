package backend

import (
	"context"
	"time"
)

// Tools is what the MCP servers of a session offer. All methods except Servers start the servers that were not needed before. They
// are safe for concurrent use, and fail with [ErrClosed] once the session was closed.
type Tools interface {
	// Servers returns the state of each server, in the client's order.
	Servers() []ServerStatus
	// List returns the tools of all servers, in the servers' order. It waits for servers that are starting, for a limited time.
	// The tools of servers that failed or are late are missing; Servers says why.
	List(ctx context.Context) ([]Tool, error)
	// Call calls the tool with this [Tool.Name], and shows the tool call to the client through u. It asks the user first, unless
	// they or their policy have allowed the tool. arguments is a JSON object, nil for none. When ctx ends, the server is told
	// to cancel the call. The failure of a tool is not an error: see ToolResult.Failed.
	Call(ctx context.Context, u Updates, name string, arguments Raw) (ToolResult, error)
	// Prompts returns the prompts of all servers, for slash commands. It waits as List does.
	Prompts(ctx context.Context) ([]Prompt, error)
	// Prompt returns the messages of the prompt with this [Prompt.Name].
	Prompt(ctx context.Context, name string, arguments map[string]string) ([]PromptMessage, error)
	// Resources returns the resources of all servers. It waits as List does.
	Resources(ctx context.Context) ([]Resource, error)
	// ReadResource returns the content of a resource, as content blocks of ACP.
	ReadResource(ctx context.Context, server, uri string) ([]Raw, error)
}

// NoTools is the Tools of a session without MCP servers.
type NoTools struct{}

var _ Tools = NoTools{}

// Servers implements [Tools].
func (NoTools) Servers() []ServerStatus { return nil }

// List implements [Tools].
func (NoTools) List(context.Context) ([]Tool, error) { return nil, nil }

// Call implements [Tools].
func (NoTools) Call(_ context.Context, _ Updates, name string, _ Raw) (ToolResult, error) {
	return ToolResult{}, &UnknownNameError{Kind: "tool", Name: name}
}

// Prompts implements [Tools].
func (NoTools) Prompts(context.Context) ([]Prompt, error) { return nil, nil }

// Prompt implements [Tools].
func (NoTools) Prompt(_ context.Context, name string, _ map[string]string) ([]PromptMessage, error) {
	return nil, &UnknownNameError{Kind: "prompt", Name: name}
}

// Resources implements [Tools].
func (NoTools) Resources(context.Context) ([]Resource, error) { return nil, nil }

// ReadResource implements [Tools].
func (NoTools) ReadResource(_ context.Context, server, _ string) ([]Raw, error) {
	return nil, &UnknownNameError{Kind: "server named", Name: server}
}

// Tool is a tool of an MCP server.
type Tool struct {
	// Name is unique in the session and stays the same while its servers do: "server.tool", of letters, digits, "_", "-"
	// and that one dot.
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

// Hints are the annotations of an MCP tool, with the protocol's defaults for those that are absent.
type Hints struct {
	// ReadOnly means that the tool changes nothing. Default false.
	ReadOnly bool
	// Destructive means that what the tool changes may be lost. Default true.
	Destructive bool
	// Idempotent means that another call with the same arguments changes nothing more. Default false.
	Idempotent bool
	// OpenWorld means that the tool reaches beyond its own data, as a web search does. Default true.
	OpenWorld bool
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	// Content are content blocks of ACP, of limited total size.
	Content []Raw
	// Structured is the tool's structured result, nil if it has none or it is over the limit.
	Structured Raw
	// Failed reports that the tool has failed, as Content describes.
	Failed bool
	// Truncated reports that Content is not complete.
	Truncated bool
}

// Prompt is a prompt of an MCP server.
type Prompt struct {
	// Name is unique in the session, "server.prompt", and can be used as a slash command.
	Name string
	// Server is the client's name for the server, and Remote the server's name for the prompt.
	Server, Remote     string
	Title, Description string
	Arguments          []PromptArgument
}

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	Name, Description string
	Required          bool
}

// PromptMessage is a message of a prompt.
type PromptMessage struct {
	// Role is "user" or "assistant".
	Role string
	// Content is a content block of ACP.
	Content Raw
}

// Resource is a resource of an MCP server.
type Resource struct {
	// Server is the client's name for the server.
	Server                              string
	URI, Name, Title, MIME, Description string
	// Size is in bytes, 0 if unknown.
	Size int64
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
	// ServerStopped means that the session was closed or no longer has the server.
	ServerStopped ServerState = "stopped"
)

// ServerStatus describes an MCP server to a person, without its secrets.
type ServerStatus struct {
	// Name is the client's name for the server, and Prefix the beginning of the names of its tools.
	Name, Prefix string
	// Transport is "stdio", "http" or "sse".
	Transport string
	State     ServerState
	// Err is the reason why it failed or ended, nil otherwise.
	Err error
	// Restarts is how often it was started again after it failed or ended.
	Restarts int
	// Product is the name and version that the server reports, and Revision the revision of MCP that it speaks. Both are "" until
	// it was connected. Modern reports whether the revision is 2026-07-28 or later.
	Product, Revision string
	Modern            bool
	// RootsDeclared reports whether the server may ask for the roots.
	RootsDeclared bool
	// SentRoots are the URIs of the roots that were last sent to it, and SentAt is the time; nil and zero if it never asked.
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

package backend

import (
	"context"
	"time"
)

// Tools are what a session's MCP servers offer. Servers are started or connected when Tools is first asked for what they
// offer, not before; Servers alone starts none. It is safe for concurrent use. All of it fails with [ErrClosed]
// once the session was closed.
type Tools interface {
	// Servers is the state of each server, in the client's order.
	Servers() []ServerStatus
	// List is the tools of all servers, in the servers' order. It waits for servers that start, up to a bound;
	// those that failed or are late are missing, and Servers says why.
	List(ctx context.Context) ([]Tool, error)
	// Call calls the tool of that name in [Tool.Name], as a tool call that the client is shown through u. The user is
	// asked first, unless they or their policy allowed the tool. arguments is a JSON object, nil for none. It ends
	// with ctx, and then the server is told. A tool that fails is no error: see ToolResult.Failed.
	Call(ctx context.Context, u Updates, name string, arguments Raw) (ToolResult, error)
	// Prompts are the prompts of all servers, for slash commands. It waits as List does.
	Prompts(ctx context.Context) ([]Prompt, error)
	// Prompt is the messages of the prompt of that name.
	Prompt(ctx context.Context, name string, arguments map[string]string) ([]PromptMessage, error)
	// Resources are the resources of all servers. It waits as List does.
	Resources(ctx context.Context) ([]Resource, error)
	// ReadResource is the content of a resource, as content blocks of ACP.
	ReadResource(ctx context.Context, server, uri string) ([]Raw, error)
}

// NoTools are the Tools of a session without MCP servers.
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
	// Server and Remote are the names that the client gave the server, and the server its tool.
	Server, Remote string
	// Title and Description are the server's words, for a person and for a model.
	Title, Description string
	// Input and Output are JSON schemas. Output is nil if the server gives none.
	Input, Output Raw
	// Hints are what the server says of the tool. They are its claims, not checked by anybody.
	Hints Hints
}

// Hints are an MCP tool's annotations, with the protocol's defaults for those that it leaves out.
type Hints struct {
	// ReadOnly: it changes nothing. Default false.
	ReadOnly bool
	// Destructive: what it changes may be lost. Default true.
	Destructive bool
	// Idempotent: calling it again changes nothing more. Default false.
	Idempotent bool
	// OpenWorld: it reaches out, as a web search does. Default true.
	OpenWorld bool
}

// ToolResult is what a tool gave.
type ToolResult struct {
	// Content are content blocks of ACP, bounded in all.
	Content []Raw
	// Structured is the tool's structured result, nil if it gave none or it is over the bound.
	Structured Raw
	// Failed says that the tool reported an error, which Content describes.
	Failed bool
	// Truncated says that Content is less than the tool gave.
	Truncated bool
}

// Prompt is a prompt of an MCP server.
type Prompt struct {
	// Name is unique in the session, "server.prompt", and fit for a slash command.
	Name string
	// Server and Remote are the client's name for the server and the server's for the prompt.
	Server, Remote     string
	Title, Description string
	Arguments          []PromptArgument
}

// PromptArgument is an argument that a prompt takes.
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
	// Size is in bytes, 0 if the server does not say.
	Size int64
}

// ServerState is where an MCP server is in its life.
type ServerState string

// The states of a server.
const (
	// ServerIdle: not started yet, since nobody needed it.
	ServerIdle ServerState = "idle"
	// ServerStarting: it is being started, connected, or given time to read the roots.
	ServerStarting ServerState = "starting"
	// ServerReady: it takes calls.
	ServerReady ServerState = "ready"
	// ServerWaiting: it ended or failed, and is started again after a while.
	ServerWaiting ServerState = "waiting"
	// ServerFailed: it could not be started. The next need tries again.
	ServerFailed ServerState = "failed"
	// ServerStopped: the session ended or no longer has it.
	ServerStopped ServerState = "stopped"
)

// ServerStatus is an MCP server as a person is told of it, without its secrets.
type ServerStatus struct {
	// Name is the client's name for it, Prefix what its tools' names begin with.
	Name, Prefix string
	// Transport is "stdio", "http" or "sse".
	Transport string
	State     ServerState
	// Err is why it failed or ended, nil while it is well.
	Err error
	// Restarts counts how often it was started again because it had failed or ended.
	Restarts int
	// Product and Revision are what it says it is, and the protocol revision that it speaks. Both are "" before
	// it was connected. Modern: that is 2026-07-28 or later.
	Product, Revision string
	Modern            bool
	// RootsDeclared says whether it may ask for the roots.
	RootsDeclared bool
	// SentRoots are the roots that it was told last, as URIs, and ToldAt is when; nil and zero if it never asked.
	SentRoots []string
	SentAt    time.Time
	// Warnings are what was warned of, one for each feature that is deprecated and in use (clause M7).
	Warnings []string
}

// UnknownNameError: no server offers what was asked for.
type UnknownNameError struct {
	// Kind is "tool", "prompt" or "server named".
	Kind string
	// Name is what was asked for.
	Name string
}

func (e *UnknownNameError) Error() string {
	return "the session's MCP servers have no " + e.Kind + " " + e.Name
}

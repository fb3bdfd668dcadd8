package mcp

import (
	"encoding/json"
	"errors"

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

package mcpclient

//lint:file-ignore SA1019 the MCP SDK deprecates sampling (SEP-2577); existing servers still use it

import (
	"context"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServerID names a server of a [Set].
type ServerID struct {
	// Name is the configured name. Several servers may have it.
	Name string
	// Prefix is unique in the set and begins the names of the server's tools.
	Prefix string
}

// Host answers the questions of a [Set]'s servers. The session implements it. Its methods are
// called from several goroutines. The contexts end with the server.
type Host interface {
	// Elicit asks the user a question of a server. The params are checked, and their Mode is one of
	// [Options].Elicitation. A server asks one question at a time.
	Elicit(ctx context.Context, s ServerID, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	// ElicitComplete is called when the user has done what a server wanted at a URL.
	ElicitComplete(ctx context.Context, s ServerID, id string) error
	// SignIn asks the user to sign in to a server at page. tokenHost is the host that will issue
	// the tokens. SignIn returns an error if the user declines. Otherwise it returns when it can do
	// nothing more, or when ctx ends because they have signed in.
	SignIn(ctx context.Context, s ServerID, page *url.URL, tokenHost string) error
	// HasModel reports whether servers may ask the session's model.
	HasModel() bool
	// Sample answers a request to the model, if there is one. The params are checked. ctx ends with
	// the calls during which the server asks. A server has at most one such request at a time.
	Sample(ctx context.Context, s ServerID, p *mcp.CreateMessageWithToolsParams) (
		*mcp.CreateMessageWithToolsResult, error)
	// Show shows the user a message about the servers.
	Show(ctx context.Context, message string) error
}

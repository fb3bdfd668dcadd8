package backend

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/mcp"
)

// Tools calls the MCP servers of a session. All methods except Servers start the servers that were
// not needed before. They are safe for concurrent use, and fail with [ErrClosed] once the session
// was closed.
type Tools interface {
	// Servers returns the state of each server, in the client's order.
	Servers() []mcp.Status
	// List sends what each server offers as soon as it is known, and then closes the channel. It
	// waits a limited time for servers that are starting. The entry of a server that failed or is
	// late says why. Nobody needs to receive.
	List(ctx context.Context) (<-chan mcp.Listing, error)
	// Call calls a tool, and shows the tool call to the client through u. It asks the user first,
	// unless they or their policy have allowed the tool. When ctx ends, the server is told to
	// cancel the call. The failure of a tool is not an error: see ToolResult.Failed.
	Call(ctx context.Context, u Updates, r ToolRequest) (ToolResult, error)
	// ReadResource returns the content of a resource of the server with this name, or prefix of the
	// names of its tools.
	ReadResource(ctx context.Context, server, uri string) (ToolResult, error)
	// Prompt returns the content of a prompt called "server:prompt", where server is as for
	// ReadResource. arguments are what the user typed: NAME=VALUE for each, or only the values in
	// the prompt's order.
	Prompt(ctx context.Context, name, arguments string) (ToolResult, error)
}

// ToolRequest is a call of an MCP server's tool.
type ToolRequest struct {
	Name      string // see [mcp.Tool.Name]
	Arguments Raw    // a JSON object, nil for none
	// ID is the id of a pending tool call that the client already sees, or "" if Call must show a
	// new one.
	ID sdk.ToolCallId
}

// ToolResult is the result of a tool call, or the content of a resource.
type ToolResult struct {
	// Content are content blocks of ACP, of limited total size.
	Content []Raw
	// Structured is the tool's structured result, nil if it has none, it is over the limit, or a
	// text of Content says the same.
	Structured Raw
	// Failed reports that the tool has failed, as Content describes.
	Failed bool
	// Cut says how long the full result is if it was shortened, as a sentence without its full
	// stop, or "".
	Cut string
}

// BlockSize returns the size in bytes of what a content block holds: an image, sound or document as
// it is, not in the form in which the block has it.
func BlockSize(block Raw) int {
	var b struct {
		Data     string
		Resource struct{ Blob string }
	}
	_ = json.Unmarshal(block, &b)
	encoded := b.Data + b.Resource.Blob
	if encoded == "" {
		return len(block)
	}
	return base64.StdEncoding.DecodedLen(len(encoded)) - strings.Count(encoded, "=")
}

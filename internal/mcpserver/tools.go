package mcpserver

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// handler calls a tool of the workspace.
func (c *client) handler(name string) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return c.inScope(ctx, r, files, func(sc *scope) (*mcp.CallToolResult, error) {
			if sc.ws == nil {
				return failed("No folder is accessible: " + sc.note + ". list_roots tells more."), nil
			}
			result, err := sc.tools.Call(ctx, name, r.Params.Arguments)
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case err != nil:
				return failed(err.Error()), nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: result.Text}}, StructuredContent: result.Structured}, nil
		})
	}
}

// inScope calls use with the scope of a call, or asks the client for its roots.
func (c *client) inScope(ctx context.Context, r *mcp.CallToolRequest, n needed, use func(*scope) (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	var result *mcp.CallToolResult
	a := asker{
		revision: r.ProtocolVersion(), capabilities: r.ClientCapabilities(), responses: r.Params.InputResponses,
		state: r.Params.RequestState, parts: [][]byte{[]byte("tools/call"), []byte(r.Params.Name), r.Params.Arguments},
	}
	err := c.within(ctx, a, n, func(sc *scope) (err error) {
		result, err = use(sc)
		return err
	})
	if errors.Is(err, errQuestion) {
		return &mcp.CallToolResult{
			Content:       []mcp.Content{}, // no content would be written as null
			InputRequests: mcp.InputRequestMap{rootsKey: &mcp.ListRootsParams{}},
			RequestState:  c.server.seal.of(a.parts...),
		}, nil
	}
	if protocol := (*jsonrpc.Error)(nil); err != nil && !errors.As(err, &protocol) && ctx.Err() == nil {
		return failed(err.Error()), nil
	}
	return result, err
}

// failed is the result of a call that a model is to read, and to do better.
func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

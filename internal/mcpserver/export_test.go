package mcpserver

//lint:file-ignore SA1019 the SDK marks all of roots and sampling as deprecated (SEP-2577)

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// AliasListRoots offers list_roots under more names, as conformance suites expect it.
func (s *Server) AliasListRoots(names ...string) {
	s.more = func(server *mcp.Server, c *client) {
		for _, name := range names {
			t := declaredListRoots()
			t.Name, t.OutputSchema = name, nil
			server.AddTool(t, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return c.inScope(ctx, r, anything, func(sc *scope) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: sc.list().String()}}}, nil
				})
			})
		}
	}
}

// AskForWhatIsDeclared offers a tool that asks for a completion or the roots, as far as the client declares them.
func (s *Server) AskForWhatIsDeclared(name string) {
	before := s.more
	s.more = func(server *mcp.Server, c *client) {
		before(server, c)
		t := &mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}
		server.AddTool(t, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			questions := mcp.InputRequestMap{}
			if declared := r.ClientCapabilities(); declared != nil && declared.RootsV2 != nil {
				questions[rootsKey] = &mcp.ListRootsParams{}
			} else if declared != nil && declared.Sampling != nil {
				questions["text"] = &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{}}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{}, InputRequests: questions}, nil
		})
	}
}

package client

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// listResources returns the server's resources.
func (c *connection) listResources(ctx context.Context) ([]backend.Resource, error) {
	if offered := c.session.InitializeResult().Capabilities; offered == nil || offered.Resources == nil {
		return nil, nil
	}
	return c.resources.get(ctx, func(ctx context.Context) (list[backend.Resource], error) {
		listed, err := collect(c, "resources", c.session.Resources(ctx, nil), func(r *mcp.Resource) string { return r.URI })
		resources := list[backend.Resource]{cut: listed.cut}
		for _, r := range listed.items {
			resources.items = append(resources.items, backend.Resource{URI: r.URI, Description: r.Description})
		}
		return resources, err
	})
}

// ReadResource implements [backend.Tools].
func (s *Set) ReadResource(ctx context.Context, server, uri string) (backend.ToolResult, error) {
	one, err := s.find(server)
	if errors.Is(err, errNotFound) {
		return backend.ToolResult{}, &backend.UnknownNameError{Kind: "server named", Name: server}
	}
	if err != nil {
		return backend.ToolResult{}, err
	}
	return fromServer(ctx, one, func(ctx context.Context, c *connection) (backend.ToolResult, error) {
		r, err := c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return backend.ToolResult{}, err
		}
		content := newBoundedContent(s.options.limits.MaxResultBytes)
		for _, resource := range r.Contents {
			if raw, err := json.Marshal(resource); resource != nil && err == nil {
				content.addRaw(backend.Encode(map[string]any{"type": "resource", "resource": backend.Raw(raw)}))
			}
		}
		return backend.ToolResult{Content: content.blocks, Cut: content.describeCut()}, nil
	})
}

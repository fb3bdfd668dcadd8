package client

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// listResources returns the server's resources.
func (c *connection) listResources(ctx context.Context) ([]*mcp.Resource, error) {
	if o := c.peer.InitializeResult().Capabilities; o == nil || o.Resources == nil {
		return nil, nil
	}
	return c.resources.get(ctx, func(ctx context.Context) (list[*mcp.Resource], error) {
		uri := func(r *mcp.Resource) string { return r.URI }
		return collect(c, "resources", c.peer.Resources(ctx, nil), uri)
	})
}

// ReadResource returns the content of a resource of the server with this prefix, or else this name.
// The error is a [*NotFoundError] if there is no such server.
func (s *Set) ReadResource(ctx context.Context, server, uri string) (
	*mcp.ReadResourceResult, error) {
	one, err := s.find(server)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, c *connection) (*mcp.ReadResourceResult, error) {
		return c.peer.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	}
	return fromServer(ctx, one, read)
}

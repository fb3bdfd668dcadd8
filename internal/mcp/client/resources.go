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
		fetch := func(cursor string) (page[mcp.Resource], error) {
			r, err := c.peer.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return page[mcp.Resource]{}, err
			}
			return page[mcp.Resource]{r.Resources, r.NextCursor}, nil
		}
		return collect(c, "resources", fetch, uri)
	})
}

// ReadResource returns the content of a resource of the server with this prefix, otherwise with
// this name. The error is a [*NotFoundError] if there is no such server.
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

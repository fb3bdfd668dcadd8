package mcpclient

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// listResources returns the server's resources.
func (c *connection) listResources(ctx context.Context) ([]acpmcp.Resource, error) {
	if c.offered().Resources == nil {
		return nil, nil
	}
	page := func(ctx context.Context, cursor string) ([]*mcp.Resource, string, error) {
		r, err := c.session.Load().ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return r.Resources, r.NextCursor, nil
	}
	uri := func(r *mcp.Resource) string { return r.URI }
	described := func(r *mcp.Resource, _ string) acpmcp.Resource {
		return acpmcp.Resource{URI: r.URI, Description: r.Description}
	}
	return lister[mcp.Resource, acpmcp.Resource]{"resources", page, uri, described}.
		fetch(ctx, c, &c.resources)
}

// ReadResource returns the content of a resource of the server with this prefix, otherwise with
// this name. The error is a [*acpmcp.UnknownNameError] if such a server does not exist.
func (s *Set) ReadResource(ctx context.Context, server, uri string) (
	*mcp.ReadResourceResult, error) {
	one, err := s.find(server)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, c *connection) (*mcp.ReadResourceResult, error) {
		return c.session.Load().ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	}
	return fromServer(ctx, one, read)
}

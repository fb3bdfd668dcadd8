package mcpclient

import (
	"context"
	"iter"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// listResources returns the server's resources.
func (c *connection) listResources(ctx context.Context) ([]acpmcp.Resource, error) {
	if c.offered().Resources == nil {
		return nil, nil
	}
	all := func(ctx context.Context) iter.Seq2[*mcp.Resource, error] {
		return c.session.Load().Resources(ctx, nil)
	}
	uri := func(r *mcp.Resource) string { return r.URI }
	described := func(r *mcp.Resource, _ string) acpmcp.Resource {
		return acpmcp.Resource{URI: r.URI, Description: r.Description}
	}
	return lister[mcp.Resource, acpmcp.Resource]{"resources", all, uri, described}.
		fetch(ctx, c, &c.resources)
}

// ReadResource returns the content of a resource of the server with this prefix, otherwise with
// this name. The error is a [*acpmcp.UnknownNameError] if such a server does not exist.
func (s *Set) ReadResource(ctx context.Context, server, uri string) (
	*mcp.ReadResourceResult, error) {
	one, err := s.find(server, &acpmcp.UnknownNameError{Kind: "server named", Name: server})
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, c *connection) (*mcp.ReadResourceResult, error) {
		return c.session.Load().ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	}
	return fromServer(ctx, one, read)
}

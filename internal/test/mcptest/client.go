package mcptest

import (
	"context"
	"strings"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Self returns a stdio server that the test binary runs as, in a role of package proctest.
func Self(name, role string, env ...string) mcpclient.Config {
	c := mcpclient.Config{Name: name, Transport: acpmcp.Stdio, Command: proctest.Executable()}
	for _, e := range proctest.Env(role, env...) {
		key, value, _ := strings.Cut(e, "=")
		c.Env = append(c.Env, mcpclient.Pair{Name: key, Value: value})
	}
	return c
}

// Servers are those of a session.
type Servers interface {
	List(ctx context.Context) (<-chan acpmcp.Listing, error)
	Servers() []acpmcp.Status
}

// ListTools waits for all servers and returns their tools, in the order of the servers.
func ListTools(ctx context.Context, from Servers) (tools []acpmcp.Tool, err error) {
	listings, err := from.List(ctx)
	if err != nil {
		return nil, err
	}
	offered := map[string][]acpmcp.Tool{}
	for l := range listings {
		offered[l.Prefix] = l.Tools
	}
	for _, s := range from.Servers() {
		tools = append(tools, offered[s.Prefix]...)
	}
	return tools, context.Cause(ctx)
}

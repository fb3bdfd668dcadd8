package client

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is a tool of a server.
type Tool struct {
	// Name is unique in the set and stays the same while its servers do: "server.tool", of letters,
	// digits, "_", "-" and that one dot.
	Name string
	// Server is the configured name of the server.
	Server string
	// Definition is the server's definition of the tool. It must not be modified.
	Definition *mcp.Tool
	// Trusted says that the user trusts the server's definition.
	Trusted bool

	key ToolKey
}

// ToolKey identifies a tool of a running or restarted server until the server redefines the tool.
type ToolKey struct {
	server      *server
	fingerprint [sha256.Size]byte
}

// Key returns the tool's key.
func (t Tool) Key() ToolKey { return t.key }

// listTools returns the server's tools.
func (c *connection) listTools(ctx context.Context) ([]Tool, error) {
	if o := c.peer.InitializeResult().Capabilities; o == nil || o.Tools == nil {
		return nil, nil
	}
	return c.tools.get(ctx, func(ctx context.Context) (list[Tool], error) {
		name := func(t *mcp.Tool) string { return t.Name }
		fetch := func(cursor string) (page[mcp.Tool], error) {
			r, err := c.peer.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return page[mcp.Tool]{}, err
			}
			return page[mcp.Tool]{r.Tools, r.NextCursor}, nil
		}
		listed, err := collect(c, "tools", fetch, name)
		return withNames(listed, name, c.server.tool), err
	})
}

// tool returns the tool with this definition, and this name in the server.
func (s *server) tool(definition *mcp.Tool, name string) Tool {
	t := Tool{
		Name: s.prefix + "." + name, Server: s.config.Name, Definition: definition,
		Trusted: s.config.Policy.Trusted,
	}
	t.key = ToolKey{s, sha256.Sum256(append([]byte(t.Name), encode(definition)...))}
	return t
}

// encode returns a value of the MCP SDK as JSON, or nil for nil.
func encode(value any) json.RawMessage {
	if v := reflect.ValueOf(value); value == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return raw
}

// Tool returns the tool called name, starting its server if necessary. The error is a
// [*NotFoundError] if there is none.
func (s *Set) Tool(ctx context.Context, name string) (Tool, error) {
	t, _, err := s.findTool(ctx, name)
	return t, err
}

// findTool returns the tool called name, and the connection to its server.
func (s *Set) findTool(ctx context.Context, name string) (Tool, *connection, error) {
	notFound := &NotFoundError{Kind: "tool", Name: name}
	prefix, _, _ := strings.Cut(name, ".")
	one, err := s.find(prefix)
	if errors.As(err, new(*NotFoundError)) {
		return Tool{}, nil, notFound
	}
	if err != nil {
		return Tool{}, nil, err
	}
	var used *connection
	tools, err := fromServer(ctx, one, func(ctx context.Context, c *connection) ([]Tool, error) {
		used = c
		return c.listTools(ctx)
	})
	if err != nil {
		return Tool{}, nil, one.sayWhenRetried(err)
	}
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, nil, notFound
	}
	return tools[i], used, nil
}

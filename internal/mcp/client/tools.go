package client

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// tool is a tool and the hash of its definition, which changes if the server redefines it.
type tool struct {
	backend.Tool
	kind        sdk.ToolKind // according to its annotations
	fingerprint [sha256.Size]byte
}

// listTools returns the server's tools.
func (c *connection) listTools(ctx context.Context) ([]tool, error) {
	if offered := c.session.InitializeResult().Capabilities; offered == nil || offered.Tools == nil {
		return nil, nil
	}
	return c.tools.get(ctx, func(ctx context.Context) (list[tool], error) {
		listed, err := collect(c, "tools", c.session.Tools(ctx, nil), func(t *mcp.Tool) string { return t.Name })
		names := make([]string, len(listed.items))
		for i, t := range listed.items {
			names[i] = t.Name
		}
		tools := list[tool]{cut: listed.cut}
		for i, name := range uniqueNames(names, nil) {
			tools.items = append(tools.items, c.describeTool(listed.items[i], c.server.prefix+"."+name))
		}
		return tools, err
	})
}

func (c *connection) describeTool(t *mcp.Tool, name string) tool {
	described := backend.Tool{
		Name: name, Server: c.server.config.Name, Remote: t.Name, Title: t.Title, Description: t.Description,
		Input: encode(t.InputSchema), Output: encode(t.OutputSchema),
		Hints: backend.Hints{Destructive: true, OpenWorld: true},
	}
	kind := sdk.ToolKindOther
	if a := t.Annotations; a != nil {
		switch {
		case a.ReadOnlyHint && a.OpenWorldHint != nil && *a.OpenWorldHint:
			kind = sdk.ToolKindFetch
		case a.ReadOnlyHint:
			kind = sdk.ToolKindRead
		case a.DestructiveHint != nil:
			kind = sdk.ToolKindEdit
		}
		described.Hints.ReadOnly, described.Hints.Idempotent = a.ReadOnlyHint, a.IdempotentHint
		described.Hints.Destructive = a.DestructiveHint == nil || *a.DestructiveHint
		described.Hints.OpenWorld = a.OpenWorldHint == nil || *a.OpenWorldHint
		if described.Title == "" {
			described.Title = a.Title
		}
	}
	return tool{described, kind, sha256.Sum256(backend.Encode(described))}
}

// encode returns a value of the MCP SDK as JSON, or nil for nil.
func encode(value any) backend.Raw {
	if value == nil || reflect.ValueOf(value).Kind() == reflect.Pointer && reflect.ValueOf(value).IsNil() {
		return nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return raw
}

// findTool returns the tool with the given full name, and the connection to its server.
func (s *Set) findTool(ctx context.Context, name string) (tool, *connection, error) {
	unknown := &backend.UnknownNameError{Kind: "tool", Name: name}
	prefix, _, _ := strings.Cut(name, ".")
	one, err := s.find(prefix)
	if errors.Is(err, errNotFound) {
		return tool{}, nil, unknown
	}
	if err != nil {
		return tool{}, nil, err
	}
	var used *connection
	tools, err := fromServer(ctx, one, func(ctx context.Context, c *connection) ([]tool, error) {
		used = c
		return c.listTools(ctx)
	})
	if err != nil {
		return tool{}, nil, one.sayWhenRetried(err)
	}
	for _, t := range tools {
		if t.Name == name {
			return t, used, nil
		}
	}
	return tool{}, nil, unknown
}

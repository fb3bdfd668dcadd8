package mcpclient

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// tool is a tool as its server lists it. Its name in the catalogue lacks the server's prefix.
type tool struct {
	backend.Tool
	fingerprint [sha256.Size]byte // tells it from one of the same name that its server makes of it later
}

var errNotFound = errors.New("not found")

// List implements [backend.Tools].
func (s *Set) List(ctx context.Context) ([]backend.Tool, error) {
	return each(ctx, s, func(ctx context.Context, m member, l *link) ([]backend.Tool, error) {
		tools, err := l.tools(ctx)
		named := make([]backend.Tool, len(tools))
		for i, t := range tools {
			named[i] = t.under(m.prefix)
		}
		return named, err
	})
}

func (t tool) under(prefix string) backend.Tool {
	t.Name = prefix + "." + t.Name
	return t.Tool
}

// tools are the server's, from the cache if it has not said that they changed.
func (l *link) tools(ctx context.Context) ([]tool, error) {
	if c := l.session.InitializeResult().Capabilities; c == nil || c.Tools == nil {
		return nil, nil
	}
	return l.lists.tools.get(ctx, func(ctx context.Context) ([]tool, error) {
		listed, err := taken(l, "tools", l.session.Tools(ctx, nil), func(t *mcp.Tool) string { return t.Name })
		if err != nil {
			return nil, err
		}
		names := make([]string, len(listed))
		for i, t := range listed {
			names[i] = t.Name
		}
		names = distinct(names)
		tools := make([]tool, len(listed))
		for i, t := range listed {
			tools[i] = l.describe(t, names[i])
		}
		return tools, nil
	})
}

func (l *link) describe(t *mcp.Tool, name string) tool {
	described := backend.Tool{
		Name: name, Server: l.server.config.Name, Remote: t.Name, Title: t.Title, Description: t.Description,
		Input: encode(t.InputSchema), Output: encode(t.OutputSchema),
		Hints: backend.Hints{Destructive: true, OpenWorld: true},
	}
	if a := t.Annotations; a != nil {
		described.Hints.ReadOnly, described.Hints.Idempotent = a.ReadOnlyHint, a.IdempotentHint
		described.Hints.Destructive = a.DestructiveHint == nil || *a.DestructiveHint
		described.Hints.OpenWorld = a.OpenWorldHint == nil || *a.OpenWorldHint
		if described.Title == "" {
			described.Title = a.Title
		}
	}
	return tool{described, sha256.Sum256(backend.Encode(described))}
}

// encode is a schema as JSON, nil for none.
func encode(schema any) backend.Raw {
	if schema == nil || reflect.ValueOf(schema).Kind() == reflect.Pointer && reflect.ValueOf(schema).IsNil() {
		return nil
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil
	}
	return raw
}

// tool finds a tool by its name in the catalogue, with the connection to its server.
func (s *Set) tool(ctx context.Context, name string) (member, *link, tool, error) {
	unknown := &backend.UnknownNameError{Kind: "tool", Name: name}
	prefix, rest, _ := strings.Cut(name, ".")
	m, err := s.find(prefix)
	if err == errNotFound {
		return m, nil, tool{}, unknown
	}
	if err != nil {
		return m, nil, tool{}, err
	}
	var at *link
	tools, err := ofServer(ctx, m, func(ctx context.Context, _ member, l *link) ([]tool, error) {
		at = l
		return l.tools(ctx)
	})
	if err != nil {
		return m, nil, tool{}, err
	}
	for _, t := range tools {
		if t.Name == rest {
			return m, at, t, nil
		}
	}
	return m, nil, tool{}, unknown
}

package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
)

// Tool is a tool that can be called.
type Tool struct {
	acpmcp.Tool
	// Annotations are the server's claims as it made them, nil for none. They must not be modified.
	Annotations *mcp.ToolAnnotations
	// Identity identifies the tool's definition and the configuration of its server. Found says
	// that a file in a root configures the server.
	Identity string
	Found    bool
}

// listTools returns the server's tools.
func (c *connection) listTools(ctx context.Context) ([]Tool, error) {
	if c.offered().Tools == nil {
		return nil, nil
	}
	name := func(t *mcp.Tool) string {
		if isForApps(t) {
			return ""
		}
		return t.Name
	}
	return fetchList(c.server, &c.tools, c.session.Tools(ctx, nil), name, c.server.tool)
}

// isForApps reports whether only the server's own page may call a tool (MCP Apps).
func isForApps(t *mcp.Tool) bool {
	ui, _ := t.Meta["ui"].(map[string]any)
	switch visibility := ui["visibility"].(type) {
	case []any:
		return !slices.Contains(visibility, any("model"))
	default:
		return visibility == "app"
	}
}

// tool returns the tool with the definition d, and this name in the server.
func (s *server) tool(d *mcp.Tool, name string) Tool {
	t := Tool{
		Tool: acpmcp.Tool{
			Name: s.prefix + "." + name, Server: s.config.Name,
			Remote: d.Name, Title: d.Title, Description: d.Description,
			Input: encode(d.InputSchema),
			Hints: acpmcp.Hints{Unstated: true, Destructive: true, OpenWorld: true},
		},
		Annotations: d.Annotations, Found: s.config.File != "",
	}
	t.Identity = string(consent.NewID(
		[]string{s.config.Identity(), t.Name}, []string{string(encode(d))}))
	if a := d.Annotations; a != nil {
		t.Hints = acpmcp.Hints{
			ReadOnly: a.ReadOnlyHint, Idempotent: a.IdempotentHint,
			Destructive: a.DestructiveHint == nil || *a.DestructiveHint,
			OpenWorld:   a.OpenWorldHint == nil || *a.OpenWorldHint,
		}
		t.Title = cmp.Or(t.Title, a.Title)
	}
	return t
}

// encode returns a value of the MCP SDK as JSON, or nil if it is nil or has no form in JSON.
func encode(value any) json.RawMessage {
	if v := reflect.ValueOf(value); value == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	raw, _ := json.Marshal(value)
	return raw
}

// Tool returns the tool called name, starting its server if necessary. The error is a
// [*acpmcp.UnknownNameError] if there is none.
func (s *Set) Tool(ctx context.Context, name string) (Tool, error) {
	t, _, err := s.findTool(ctx, name)
	return t, err
}

// findTool returns the tool called name, and the connection to its server.
func (s *Set) findTool(ctx context.Context, name string) (Tool, *connection, error) {
	notFound := &acpmcp.UnknownNameError{Kind: "tool", Name: name}
	prefix, _, _ := strings.Cut(name, ".")
	one, err := s.find(prefix, notFound)
	if err != nil {
		return Tool{}, nil, err
	}
	var used *connection
	tools, err := fromServer(ctx, one, func(ctx context.Context, c *connection) ([]Tool, error) {
		used = c
		return c.listTools(ctx)
	})
	if err != nil {
		return Tool{}, nil, err
	}
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, nil, notFound
	}
	return tools[i], used, nil
}

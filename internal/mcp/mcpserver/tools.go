package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// addTools adds the file tools. Its list_roots also reports where the roots come from and which
// were left out.
func (c *client) addTools() {
	for _, t := range c.server.tools {
		if t.Name == "list_roots" {
			c.sdk.AddTool(listRootsTool(), c.listRoots)
		} else {
			c.sdk.AddTool(declaration(t), c.fileTool(t.Name))
		}
	}
}

// declaration returns a tool as tools/list describes it.
func declaration(t tools.Tool) *mcp.Tool {
	no := false
	hints := &mcp.ToolAnnotations{ReadOnlyHint: t.Annotations.ReadOnly, OpenWorldHint: &no}
	if !t.Annotations.ReadOnly { // the other hints have no meaning for a read-only tool
		hints.DestructiveHint = &t.Annotations.Destructive
		hints.IdempotentHint = t.Annotations.Idempotent
	}
	return &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema,
		Annotations: hints}
}

// fileTool returns the handler of a file tool.
func (c *client) fileTool(name string) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return c.callTool(ctx, r, true, func(sc *scope) (*mcp.CallToolResult, error) {
			if sc.ws == nil {
				return toolError("No files are accessible: " + sc.reason +
					". list_roots shows details."), nil
			}
			// Gemini CLI adds this to the schemas of all MCP tools for its own scheduling, and does
			// not remove it from calls.
			own := strictjson.Remove(r.Params.Arguments, "wait_for_previous")
			result, err := sc.tools.Call(ctx, name, own)
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case err != nil:
				return toolError(err.Error()), nil
			}
			// Without structuredContent: some clients show it to the model instead of the text.
			content := []mcp.Content{&mcp.TextContent{Text: result.Text +
				c.mentions.Lines(ctx, sc.ws, usedPaths(r.Params.Arguments)...)}}
			if result.Media != nil {
				content = append(content, mediaContent(result.Media))
			}
			return &mcp.CallToolResult{Content: content}, nil
		})
	}
}

// usedPaths returns the paths that a call uses, which is the first root if it names none.
func usedPaths(arguments json.RawMessage) []string {
	paths := slices.DeleteFunc(tools.Paths(arguments), func(p string) bool { return p == "" })
	if len(paths) == 0 {
		return []string{"."}
	}
	return paths
}

// mediaContent returns an image or a sound as that kind of content, and anything else as a
// resource.
func mediaContent(m *tools.Media) mcp.Content {
	switch kind, _, _ := strings.Cut(m.Type, "/"); kind {
	case "image":
		return &mcp.ImageContent{MIMEType: m.Type, Data: m.Data}
	case "audio":
		return &mcp.AudioContent{MIMEType: m.Type, Data: m.Data}
	default:
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: m.URI, MIMEType: m.Type,
			Blob: m.Data}}
	}
}

// callTool calls call with the scope of a tools/call, or asks the client for its roots.
func (c *client) callTool(
	ctx context.Context, r *mcp.CallToolRequest, needsFiles bool,
	call func(*scope) (*mcp.CallToolResult, error),
) (*mcp.CallToolResult, error) {
	identity := []string{"tools/call", r.Params.Name, string(r.Params.Arguments)}
	request := scopedRequest{r, r.Params.InputResponses, r.Params.RequestState, identity, needsFiles}
	result, err := inScope(ctx, c, request, call,
		func(requests mcp.InputRequestMap, state string) *mcp.CallToolResult {
			return &mcp.CallToolResult{InputRequests: requests, RequestState: state,
				Content: []mcp.Content{}} // nil would be encoded as null
		})
	if protocol := (*jsonrpc.Error)(nil); err != nil && !errors.As(err, &protocol) &&
		ctx.Err() == nil {
		return toolError(err.Error()), nil
	}
	return result, err
}

// toolError returns the result of a failed call, which a model reads.
func toolError(message string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{
		&mcp.TextContent{Text: message}}}
}

func listRootsTool() *mcp.Tool {
	return declaration(tools.Tool{
		Name: "list_roots",
		Description: "List the accessible folders, and why others are not. The first is the " +
			"working directory.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{}}`),
		Annotations: tools.Annotations{ReadOnly: true, Idempotent: true},
	})
}

// rootList is the structured result of list_roots.
type rootList struct {
	Source  source        `json:"source"`
	Roots   []listedRoot  `json:"roots"`
	LeftOut []leftOutRoot `json:"left_out"`
	Note    string        `json:"note,omitempty"`
}

type listedRoot struct {
	Path     string `json:"path"`
	Real     string `json:"real"`
	URI      string `json:"uri"`
	Name     string `json:"name,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

type leftOutRoot struct {
	URI    string `json:"uri"`
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason"`
}

// maxLeftOut is the most left-out roots of a list that list_roots and the log name.
const maxLeftOut = 100

// listRoots handles list_roots, which always has a result.
func (c *client) listRoots(
	ctx context.Context, r *mcp.CallToolRequest,
) (*mcp.CallToolResult, error) {
	return c.callTool(ctx, r, false, func(sc *scope) (*mcp.CallToolResult, error) {
		list := sc.list()
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: list.String()}},
			StructuredContent: strictjson.Encode(list)}, nil
	})
}

// list describes the roots of a scope.
func (sc *scope) list() rootList {
	list := rootList{Source: sc.source, Roots: []listedRoot{},
		LeftOut: append([]leftOutRoot{}, sc.leftOut...), Note: sc.reason}
	if sc.ws == nil {
		return list
	}
	for _, r := range sc.ws.Opened() {
		uri, name := r.Real.URI(), sc.names[r.Dir]
		if sc.gone(r) {
			list.LeftOut = append(list.LeftOut, leftOutRoot{uri, name, sc.source.whenGone()})
		} else {
			list.Roots = append(list.Roots, listedRoot{r.Dir.String(), r.Real.String(), uri, name,
				r.Grant == workspace.ReadOnly})
		}
	}
	if len(list.Roots) == 0 {
		list.Note = "none of the folders is where it was"
	}
	return list
}

// String returns the list for a model.
func (l rootList) String() string {
	var b strings.Builder
	if len(l.Roots) == 0 {
		fmt.Fprintf(&b, "No files are accessible: %s.\n", l.Note)
	} else {
		fmt.Fprintf(&b, "Accessible folders (source: %s); the first is the working directory, "+
			"where relative paths start:\n", l.Source)
	}
	for _, r := range l.Roots {
		b.WriteString(text.Printable(r.Path))
		if r.Real != r.Path {
			b.WriteString(" -> " + text.Printable(r.Real))
		}
		if r.ReadOnly {
			b.WriteString(" [read-only]")
		}
		b.WriteByte('\n')
	}
	if len(l.Roots) > 0 && l.Note != "" {
		fmt.Fprintf(&b, "note: %s\n", l.Note)
	}
	for _, r := range l.LeftOut {
		fmt.Fprintf(&b, "left out: %q: %s\n", r.URI, r.Reason)
	}
	return b.String()
}

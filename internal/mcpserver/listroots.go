package mcpserver

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577); they are followed for the clients that there are

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

const listRootsName = "list_roots"

// declaredListRoots is the one tool that is not that of the workspace: it also tells where the roots come from, and
// what was left out.
func declaredListRoots() *mcp.Tool {
	return declared(tools.Tool{
		Name: listRootsName, Title: "List the roots",
		Description: "The folders that can be accessed, in order, with where they come from; and those that were named but cannot, with why. Relative paths start in the first.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["source","roots","left_out"],"properties":{
			"source":{"type":"string","enum":["configured","client","fallback","none"],"description":"who named the roots"},
			"roots":{"type":"array","description":"what can be accessed, in order","items":{"type":"object","required":["path","real","uri"],"properties":{
				"path":{"type":"string"},"real":{"type":"string","description":"with links followed"},"uri":{"type":"string"},"name":{"type":"string"}}}},
			"left_out":{"type":"array","items":{"type":"object","required":["uri","reason"],"properties":{
				"uri":{"type":"string"},"name":{"type":"string"},"reason":{"type":"string"}}}},
			"note":{"type":"string","description":"why nothing can be accessed"}}}`),
		Annotations: tools.Annotations{ReadOnly: true, Idempotent: true},
	})
}

// listing is the structured answer of list_roots.
type listing struct {
	Source  source       `json:"source"`
	Roots   []listedRoot `json:"roots"`
	LeftOut []leftOut    `json:"left_out"`
	Note    string       `json:"note,omitempty"`
}

type listedRoot struct {
	Path string `json:"path"`
	Real string `json:"real"`
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

type leftOut struct {
	URI    string `json:"uri"`
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason"`
}

// maxLeftOut is the most entries that list_roots shows of those left out.
const maxLeftOut = 100

// listRoots serves list_roots, which answers whatever the scope is.
func (c *client) listRoots(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return c.inScope(ctx, r, anything, func(sc *scope) (*mcp.CallToolResult, error) {
		l := sc.list()
		structured, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: l.String()}}, StructuredContent: json.RawMessage(structured)}, nil
	})
}

// list is what there is to say of a scope.
func (sc *scope) list() listing {
	l := listing{Source: sc.source, Roots: []listedRoot{}, LeftOut: []leftOut{}, Note: sc.note}
	shown := map[int]bool{}
	for _, e := range sc.entries {
		switch {
		case e.opened == nil && len(l.LeftOut) < maxLeftOut:
			reason := "it could not be opened"
			if uri := (*mcproots.URIError)(nil); errors.As(e.offered.Err, &uri) {
				reason = string(uri.Reason)
			} else if e.offered.Err != nil {
				reason = e.offered.Err.Error()
			}
			l.LeftOut = append(l.LeftOut, leftOut{shorten(e.offered.URI), shorten(e.offered.Name), reason})
		case e.opened != nil && !shown[e.opened.Index]:
			shown[e.opened.Index] = true
			l.Roots = append(l.Roots, listedRoot{e.opened.Dir.String(), e.opened.Real.String(), mcproots.FromDir(e.opened.Real), shorten(e.offered.Name)})
		}
	}
	return l
}

// String is the listing for a model.
func (l listing) String() string {
	var b strings.Builder
	if len(l.Roots) == 0 {
		fmt.Fprintf(&b, "No folder is accessible: %s.\n", l.Note)
	} else {
		fmt.Fprintf(&b, "The roots (%s), in order; relative paths start in the first:\n", l.Source)
	}
	for _, r := range l.Roots {
		b.WriteString(tools.Printable(r.Path))
		if r.Real != r.Path {
			b.WriteString(" -> " + tools.Printable(r.Real))
		}
		b.WriteByte('\n')
	}
	for _, e := range l.LeftOut {
		fmt.Fprintf(&b, "left out: %q: %s\n", e.URI, e.Reason)
	}
	return b.String()
}

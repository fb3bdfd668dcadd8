package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

type resourceInput struct {
	Server string `json:"server" jsonschema:"the name of an MCP server"`
	URI    string `json:"uri,omitempty" jsonschema:"the URI of the resource; leave it out to list those of the server"`
}

// resourceTool returns the tool that reads resources of the servers in listings, all of which have
// resources.
func resourceTool(listings []mcp.Listing) tool {
	var names []string
	for _, l := range listings {
		names = append(names, text.Quote(text.Name(l.Name)))
	}
	run := func(c *modelCall, ctx context.Context, in resourceInput) (string, error) {
		i := slices.IndexFunc(listings, func(l mcp.Listing) bool {
			return in.Server == l.Name || in.Server == l.Prefix
		})
		switch {
		case i < 0:
			return "", fmt.Errorf("no MCP server with resources is called %s; use %s",
				text.Quote(text.Name(in.Server)), strings.Join(names, " or "))
		case in.URI == "":
			return listResources(listings[i]), nil
		}
		return c.readResource(ctx, listings[i], in.URI)
	}
	title := func(in resourceInput) string {
		if in.URI == "" {
			return "List the resources of MCP server " + text.Argument(in.Server)
		}
		return "Read " + text.Argument(in.URI) + " of MCP server " + text.Argument(in.Server)
	}
	return tool{run: (*modelCall).runOwn, Tool: tools.Define(tools.Tool{
		Name: "read_resource", Kind: tools.KindRead,
		Description: "Read or list the resources of an MCP server. Servers with resources: " +
			strings.Join(names, ", ") + ".",
		Annotations: tools.Annotations{ReadOnly: true, Idempotent: true},
	}, title, run)}
}

// listResources returns a text for the model that lists the resources of a server, in the server's
// own words.
func listResources(l mcp.Listing) string {
	var b strings.Builder
	for _, r := range l.Resources {
		b.WriteString(text.Attributed("- "+text.Truncate(r.URI, 500), r.Description, 300) + "\n")
		if b.Len() > maxResult {
			return text.Prefix(b.String(), maxResult) + "\n[… truncated]"
		}
	}
	return b.String()
}

// maxURI is how much of a URI the user is shown, in bytes.
const maxURI = 2 << 10

// readResource reads a resource. It asks the user about one that the server does not list, because
// its URI may reveal something to the server, and about one that a rule is about.
func (c *modelCall) readResource(ctx context.Context, l mcp.Listing, uri string) (string, error) {
	isListed := slices.ContainsFunc(l.Resources, func(r mcp.Resource) bool { return r.URI == uri })
	action := permission.At(c.turn.host.Workspace()).ToolCall(
		permission.ServerTool{Server: l.Name, ReadOnly: true},
		backend.Encode(map[string]string{"uri": uri}))
	title := "Read a resource of MCP server " + text.Quote(text.Name(l.Name))
	if !isListed {
		title += " that it does not list"
		if len(uri) > maxURI || !text.IsVisible(uri) || strings.Contains(uri, "\n") {
			return "", fmt.Errorf("the server does not list this URI, and the user cannot be "+
				"asked about it: it must have at most %d visible characters in one line", maxURI)
		}
	}
	shown := backend.ToolCall{Content: backend.TextContent("The server gets this URI:\n\n" +
		text.Block("", text.Printable(uri)))}
	shown.Title = &title
	_, err := c.askUser(ctx, backend.Question{Call: shown, OnlyByRule: isListed}, action)
	if err != nil {
		return "", err
	}
	result, err := c.turn.host.Tools().ReadResource(ctx, l.Prefix, uri)
	if err != nil {
		return "", err
	}
	if len(result.Content) == 0 {
		return "", errors.New("the server returned nothing")
	}
	said, _ := c.turn.fromServer(result)
	return said, nil
}

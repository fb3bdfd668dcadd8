package explore

import (
	"context"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// showOffers answers /mcp tools: the tools, prompts and resources of all servers, which are started for it.
func (t *turn) showOffers(ctx context.Context) error {
	from := t.host.Tools()
	t.offers.stale = true
	tools, err := from.List(ctx)
	if err != nil {
		return t.unserved(ctx, err)
	}
	prompts, err := from.Prompts(ctx)
	if err != nil {
		return t.unserved(ctx, err)
	}
	t.offers.prompts = prompts
	resources, err := from.Resources(ctx)
	if err != nil {
		return t.unserved(ctx, err)
	}
	servers := from.Servers()
	if len(servers) == 0 {
		return t.write("The session has no MCP servers.\n")
	}
	for _, s := range servers {
		var lines []string
		for _, tool := range tools {
			if tool.Server == s.Name {
				lines = append(lines, describeTool(tool)...)
			}
		}
		for _, p := range prompts {
			if p.Server == s.Name {
				lines = append(lines, labelledText(strings.TrimSpace("/"+p.Name+" "+promptHint(p)), p.Description))
			}
		}
		for _, r := range resources {
			if r.Server == s.Name {
				lines = append(lines, labelledText("resource "+clip(r.URI, longestSaid), r.Description))
			}
		}
		if err := t.serverGroup(s, lines); err != nil {
			return err
		}
	}
	return nil
}

// serverGroup writes what a server says that it offers, or why it offers nothing.
func (t *turn) serverGroup(s backend.ServerStatus, lines []string) error {
	if s.State != backend.ServerReady {
		return t.write(describeServer(s) + "\n")
	}
	if err := t.write("MCP server **" + code(s.Name) + "** says that it has:\n\n"); err != nil {
		return err
	}
	if len(lines) == 0 {
		return t.write("Nothing.\n\n")
	}
	return t.quote(strings.Join(lines, "\n") + "\n")
}

// describeTool is how a tool is called, and what its server says of it.
func describeTool(tool backend.Tool) []string {
	lines := []string{labelledText("/call "+tool.Name, tool.Description)}
	var claims []string
	switch {
	case tool.Hints.ReadOnly:
		claims = append(claims, "changes nothing")
	case tool.Hints.Destructive:
		claims = append(claims, "may destroy what it changes")
	default:
		claims = append(claims, "changes something")
	}
	if tool.Hints.OpenWorld {
		claims = append(claims, "reaches out")
	}
	lines = append(lines, "  it claims that it "+strings.Join(claims, " and "))
	if len(tool.Input) > 0 {
		lines = append(lines, "  input: "+clip(printable(compact(tool.Input)), longestSchema))
	}
	return lines
}

// longestSchema bounds what is shown of a tool's schema, in bytes.
const longestSchema = 1 << 10

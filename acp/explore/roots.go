package explore

import (
	"context"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// showRoots answers /roots.
func (t *turn) showRoots(ctx context.Context, _ prompt) error {
	for i, r := range t.roots {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		state, err := t.workspace().State(i)
		if err != nil {
			return err
		}
		if err := t.write(describeRoot(r, state)); err != nil {
			return err
		}
	}
	return t.write(t.describeServers())
}

func describeRoot(r root, state workspace.State) string {
	role := ""
	if r.Index == 0 {
		role = ", the working directory: relative paths start here"
	}
	return fmt.Sprintf("Root %d: **%s**%s\n\n- path: %s\n- real path: %s\n- URI: %s\n- state: %s\n\n",
		r.Index, code(r.label), role, code(r.Dir.String()), code(r.Real.String()), code(r.Real.URI()), describeState(state))
}

func describeState(state workspace.State) string {
	switch state {
	case workspace.OK:
		return "ok"
	case workspace.Moved:
		return "moved: the directory is somewhere else now; the session keeps to it"
	case workspace.Replaced:
		return "replaced: something else is at the path now; the session keeps to the directory that it was given"
	case workspace.Missing:
		return "missing: the directory is gone"
	case workspace.Unreachable:
		return "unreachable: the path cannot be looked up"
	default:
		return string(state)
	}
}

func (t *turn) describeServers() string {
	servers := t.host.Tools().Servers()
	if len(servers) == 0 {
		return "MCP servers: none\n"
	}
	var b strings.Builder
	b.WriteString("MCP servers:\n\n")
	for _, s := range servers {
		fmt.Fprintf(&b, "- %s (%s): %s\n", code(s.Name), s.Transport, s.State)
	}
	return b.String()
}

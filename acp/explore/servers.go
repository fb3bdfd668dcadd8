package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// mcp answers /mcp.
func (t *turn) mcp(ctx context.Context, p prompt) error {
	verb, rest := cutWord(p.text)
	switch {
	case verb == "":
		return t.showServers()
	case verb == "tools" && rest == "":
		return t.showOffers(ctx)
	case verb == "start" && rest != "":
		return t.startFound(ctx, rest)
	default:
		return t.write("There are " + code("/mcp") + ", " + code("/mcp tools") + " and " + code("/mcp start NAME") + ".\n")
	}
}

// cutWord is the first word of a text, and the rest.
func cutWord(text string) (word, rest string) {
	if i := strings.IndexAny(text, " \t\r\n"); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

// showServers shows the session's MCP servers as they are, and those that roots name. It starts none.
func (t *turn) showServers() error {
	servers := t.host.Tools().Servers()
	if len(servers) == 0 {
		if err := t.write("The session has no MCP servers.\n\n"); err != nil {
			return err
		}
	}
	for _, s := range servers {
		if err := t.write(describeServer(s) + "\n"); err != nil {
			return err
		}
	}
	return t.showFoundServers()
}

// describeServer is all that is known of a server. What it says itself is quoted.
func describeServer(s backend.ServerStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "MCP server **%s** (%s): %s\n\n", code(s.Name), s.Transport, describeServerState(s.State))
	if s.Prefix != s.Name {
		fmt.Fprintf(&b, "- its tools are called %s\n", code(s.Prefix+".…"))
	}
	if s.Revision != "" {
		era := "legacy era: it asks for roots by itself"
		if s.Modern {
			era = "modern era: it asks for roots in the results of calls"
		}
		fmt.Fprintf(&b, "- product: %s\n- protocol: %s, %s\n", code(clip(s.Product, longestSaid)), code(clip(s.Revision, longestSaid)), era)
	}
	b.WriteString(describeTold(s))
	if s.Restarts > 0 {
		fmt.Fprintf(&b, "- started again: %s\n", count(s.Restarts, "time", "times"))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(&b, "- warning: %s\n", printable(warning))
	}
	if s.Err != nil {
		fmt.Fprintf(&b, "- error: %s\n", code(clip(s.Err.Error(), longestError)))
	}
	return b.String()
}

// longestError bounds what is shown of a server's error, in bytes.
const longestError = 2 << 10

// describeTold is which roots a server was told, in order (A20).
func describeTold(s backend.ServerStatus) string {
	switch {
	case !s.SentAt.IsZero():
		var b strings.Builder
		fmt.Fprintf(&b, "- told %s at %s:\n", count(len(s.SentRoots), "root", "roots"), s.SentAt.Format(time.RFC3339))
		for i, uri := range s.SentRoots {
			fmt.Fprintf(&b, "  %d. %s\n", i+1, code(uri))
		}
		return b.String()
	case s.Revision == "":
		return ""
	case !s.RootsDeclared:
		return "- told no roots: it may not ask for them\n"
	default:
		return "- told no roots: it has not asked for them\n"
	}
}

func describeServerState(state backend.ServerState) string {
	switch state {
	case backend.ServerIdle:
		return "idle; it starts when something of it is first asked for, as by " + code("/mcp tools")
	case backend.ServerWaiting:
		return "waiting; it ended, and is started again after a while"
	case backend.ServerFailed:
		return "failed; the next use tries again"
	default:
		return string(state)
	}
}

// showFoundServers shows the MCP servers that roots name. Being found starts none (A25).
func (t *turn) showFoundServers() error {
	for _, r := range t.roots {
		var lines []string
		for _, a := range t.host.Catalog().Of(discovery.MCPServer) {
			if a.Root.Index == r.Index {
				lines = append(lines, t.describeFoundServer(r, a)...)
			}
		}
		if len(lines) == 0 {
			continue
		}
		if err := t.write("MCP servers that are found: "); err != nil {
			return err
		}
		if err := t.rootGroup(r, lines); err != nil {
			return err
		}
	}
	return nil
}

// describeFoundServer is a server that a root names: the whole of its command, without secrets, and how to start it.
func (t *turn) describeFoundServer(r root, a discovery.Artifact) []string {
	if a.State != discovery.Active || a.Server == nil {
		return describeFound(r, a, "")
	}
	lines := []string{printable(a.Name) + ": " + printable(a.Server.String()), "  in " + r.place(a.Path)}
	if !a.Server.Env.IsZero() {
		lines = append(lines, "  with the variables "+printable(a.Server.Env.String()))
	}
	if !a.Server.Headers.IsZero() {
		lines = append(lines, "  with the headers "+printable(a.Server.Headers.String()))
	}
	for _, d := range a.Diagnostics {
		lines = append(lines, "  "+printable(d.String()))
	}
	switch {
	case t.started[a.Path+"\x00"+a.Name]:
		return append(lines, "  started in this session, see above")
	case t.has(a.Name):
		return append(lines, "  found, not started: the client gave the session another one of this name")
	default:
		return append(lines, "  found, not started: /mcp start "+printable(a.Name)+" starts it, if you allow it")
	}
}

// has reports whether the session has an MCP server of that name.
func (s *session) has(name string) bool {
	for _, server := range s.host.Tools().Servers() {
		if server.Name == name {
			return true
		}
	}
	return false
}

// startFound answers /mcp start: it starts a server that a root names, for which the host asks the user.
func (t *turn) startFound(ctx context.Context, name string) error {
	named := t.host.Catalog().Named(discovery.MCPServer, name)
	if len(named) == 0 {
		return t.write("The roots name no MCP server " + code(clip(name, 200)) + ". " + code("/mcp") + " lists those that they do.\n")
	}
	a := named[0]
	key := a.Path + "\x00" + a.Name
	switch {
	case a.State != discovery.Active:
		return t.write(fmt.Sprintf("The MCP server %s cannot be started: %s.\n", code(name), printable(a.Reason)))
	case t.has(name) && !t.started[key]:
		return t.write(fmt.Sprintf("The MCP server %s was not started: the client gave the session another one of this name, which keeps it.\n", code(name)))
	}
	if err := t.host.StartServer(ctx, a); err != nil {
		return t.unserved(ctx, err)
	}
	if t.started == nil {
		t.started = make(map[string]bool)
	}
	t.started[key], t.offers.stale = true, true
	if _, err := t.host.Tools().List(ctx); err != nil { // this is what starts it
		return t.unserved(ctx, err)
	}
	for _, s := range t.host.Tools().Servers() {
		if s.Name == name {
			return t.write(describeServer(s))
		}
	}
	return nil
}

// unserved says why something of an MCP server did not work, or is the error that ends the turn.
func (t *turn) unserved(ctx context.Context, err error) error {
	var unknown *backend.UnknownNameError
	var refused *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, backend.ErrCancelled), errors.Is(err, backend.ErrClosed), errors.Is(err, backend.ErrFenced),
		errors.Is(err, backend.ErrTurnOver):
		return err
	case errors.As(err, &unknown):
		return t.write(notDone + printable(err.Error()) + ". " + code("/mcp tools") + " lists what they have.\n")
	case errors.As(err, &refused):
		return t.write(notDone + printable(refused.Message) + ".\n")
	default:
		return t.write(notDone + clip(printable(err.Error()), longestError) + ".\n")
	}
}

// notDone begins the answer to what did not work.
const notDone = "This did not work: "

package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Limits on the text that is shown of a server, in bytes.
const (
	maxError        = 2 << 10
	maxSchema       = 1 << 10
	maxInstructions = 8 << 10
)

// MCP answers /mcp, and writes what MCP servers return or why they failed.
type MCP struct {
	*Reply
	Name string // of the command
	// Host returns the session's host as it is now.
	Host func() backend.Host
	// Start starts a server found in a root, if the user allows that.
	Start func(context.Context, discovery.Artifact) error
	// PassedOn means that the session's agent connects the servers. They are connected here only to
	// show the user what they offer.
	PassedOn bool
}

// typed returns the command with an argument, as the user types it.
func (m MCP) typed(argument string) string {
	return text.Code(strings.TrimSpace("/" + m.Name + " " + argument))
}

// answerMCP answers /mcp. If the session's agent connects the MCP servers, the adapter starts them
// a second time when the command needs them.
func (t *turn) answerMCP(c prompts.Command) error {
	m := MCP{Reply: t.Reply, Name: c.Name, Host: t.session.Host, Start: t.session.StartServer,
		PassedOn: t.PassesOn}
	return m.Answer(t.ctx, c.Arguments)
}

// Answer answers /mcp with the given argument.
func (m MCP) Answer(ctx context.Context, argument string) error {
	verb, rest := text.CutWord(argument)
	switch {
	case verb == "":
		return m.showServers()
	case verb == "tools" && rest == "":
		return m.showTools(ctx)
	case verb == "start" && rest != "":
		return m.startServer(ctx, rest)
	case verb == "read" && rest != "":
		return m.readResource(ctx, rest)
	default:
		return m.Refuse("Use " + m.typed("") + ", " + m.typed("tools") + ", " +
			m.typed("start NAME") + " or " + m.typed("read SERVER URI") + ".\n")
	}
}

// readResource answers /mcp read. As the name of a server may contain spaces, the URI is the last
// word.
func (m MCP) readResource(ctx context.Context, argument string) error {
	i := strings.LastIndexAny(argument, " \t\r\n")
	if i < 0 {
		return m.Refuse("Give a server and the URI of one of its resources: " +
			m.typed("read SERVER URI") + ". " + m.typed("tools") + " lists them.\n")
	}
	server, uri := strings.TrimSpace(argument[:i]), argument[i+1:]
	result, err := m.Host().Tools().ReadResource(ctx, server, uri)
	if err != nil {
		return m.WriteError(ctx, err)
	}
	return m.ShowResult("MCP server "+text.Code(server)+" returned", result)
}

// Prompt answers /SERVER:PROMPT.
func (m MCP) Prompt(ctx context.Context, name, arguments string) error {
	if err := m.Flush(); err != nil {
		return err
	}
	result, err := m.Host().Tools().Prompt(ctx, name, arguments)
	if err != nil {
		return m.WriteError(ctx, err)
	}
	return m.ShowResult("The prompt "+text.Code(name)+" returned", result)
}

// showServers shows the session's MCP servers and those configured in the roots. It starts none.
func (m MCP) showServers() error {
	servers := m.Host().Tools().Servers()
	if len(servers) == 0 {
		m.Write("The session has no MCP servers.\n\n")
	}
	for _, s := range servers {
		m.Write(m.describeServer(s) + "\n")
	}
	for _, r := range LabelRoots(m.Host().Workspace()) {
		var lines []string
		for _, a := range m.Host().Catalog().Of(discovery.MCPServer) {
			if a.Root.Index == r.Index {
				lines = append(lines, m.describeConfigured(r, a)...)
			}
		}
		if len(lines) == 0 {
			continue
		}
		m.Write("MCP servers configured in ")
		m.WriteGroup(r, append(lines, r.LimitsReached(m.Host().Catalog())...))
	}
	return nil
}

// describeConfigured describes a server configured in a root: its whole command without secrets,
// and how to start it.
func (m MCP) describeConfigured(r Root, a discovery.Artifact) []string {
	if a.State != discovery.Active || a.Server == nil {
		return r.Describe(a, "")
	}
	lines := []string{text.Printable(a.Name) + ": " + text.Printable(a.Server.String()), "  in " +
		r.ShowPath(a.Path)}
	if !a.Server.Env.IsZero() {
		lines = append(lines, "  with the variables "+text.Printable(a.Server.Env.String()))
	}
	if a.Server.EnvFile != "" {
		lines = append(lines, "  with the variables in the file "+text.Printable(a.Server.EnvFile))
	}
	if !a.Server.Headers.IsZero() {
		lines = append(lines, "  with the headers "+text.Printable(a.Server.Headers.String()))
	}
	for _, d := range a.Diagnostics {
		lines = append(lines, "  "+text.Printable(d))
	}
	switch {
	case m.isStarted(a):
		return append(lines, "  started in this session, see above")
	case m.hasServer(a.Name):
		return append(lines,
			"  found, not started: the client provides another server with this name")
	default:
		return append(lines, "  found, not started: /"+m.Name+" start "+text.Printable(
			a.Name)+" starts it, if you allow it")
	}
}

// isStarted reports whether the session has a server that was found.
func (m MCP) isStarted(a discovery.Artifact) bool {
	return slices.ContainsFunc(m.Host().Tools().Servers(), func(started mcp.Status) bool {
		return started.Name == a.Name && started.File == a.Path
	})
}

// hasServer reports whether the session has an MCP server called name.
func (m MCP) hasServer(name string) bool {
	return slices.ContainsFunc(m.Host().Tools().Servers(),
		func(server mcp.Status) bool { return server.Name == name })
}

// unstarted says where to find the servers configured in the roots, "" if all are started.
func (m MCP) unstarted() string {
	for _, a := range m.Host().Catalog().Active(discovery.MCPServer) {
		if !m.hasServer(a.Name) {
			return " " + m.typed("") +
				" shows those that the folders configure and that are not started."
		}
	}
	return ""
}

// startServer answers /mcp start.
func (m MCP) startServer(ctx context.Context, name string) error {
	named := m.Host().Catalog().Named(discovery.MCPServer, name)
	if len(named) == 0 {
		return m.Refuse("No folder configures an MCP server called " +
			text.Code(text.Truncate(name, 200)) + ". " + m.typed("") +
			" lists the servers.\n")
	}
	a := named[0]
	switch {
	case a.State != discovery.Active:
		return m.Refuse(fmt.Sprintf("The MCP server %s cannot be started: %s.\n", text.Code(name),
			text.Printable(a.Reason)))
	case m.hasServer(name) && !m.isStarted(a):
		return m.Refuse(fmt.Sprintf("The MCP server %s was not started: the client provides "+
			"another server with this name.\n", text.Code(name)))
	}
	if err := m.Start(ctx, a); err != nil {
		return m.WriteError(ctx, err)
	}
	for _, s := range m.Host().Tools().Servers() {
		if s.Name == name && m.PassedOn {
			return m.Write(m.describeServer(s))
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listings, err := m.Host().Tools().List(ctx) // starts it
	if err != nil {
		return m.WriteError(ctx, err)
	}
	for l := range listings {
		if l.Name == name {
			return m.Write(m.describeServer(l.Status))
		}
	}
	return nil
}

// showTools answers /mcp tools: it shows what each server offers as soon as it is known, and starts
// servers if necessary.
func (m MCP) showTools(ctx context.Context) error {
	servers := len(m.Host().Tools().Servers())
	if servers == 0 {
		return m.Write("The session has no MCP servers." + m.unstarted() + "\n")
	}
	share := m.bound / servers // of the answer, for each server
	listings, err := m.Host().Tools().List(ctx)
	if err != nil {
		return m.WriteError(ctx, err)
	}
	for l := range listings {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m.showListing(l, share)
		if err := m.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// showListing shows what a server offers in at most share bytes, and its status if there is
// something wrong with it.
func (m MCP) showListing(l mcp.Listing, share int) {
	if l.Err != nil {
		m.Write(m.describeServer(l.Status) + "\n")
	}
	var lines, short []string
	for _, tool := range l.Tools {
		described := describeTool(tool)
		lines, short = append(lines, described...), append(short, described[0])
	}
	for _, p := range l.Prompts {
		line := text.Attributed(strings.TrimSpace("prompt /"+p.Name+" "+p.Hint), p.Description,
			maxDescription)
		lines, short = append(lines, line), append(short, line)
	}
	for _, r := range l.Resources {
		line := text.Attributed("resource "+text.Truncate(r.URI, maxDescription), r.Description,
			maxDescription)
		lines, short = append(lines, line), append(short, line)
	}
	switch {
	case len(lines) > 0:
		intro, list := "MCP server **"+text.Code(l.Name)+"** offers:\n\n", strings.Join(lines, "\n")
		if len(list) >= share && len(l.Tools) > 0 {
			intro, list = intro+"The list is long: the arguments of the tools are left out.\n\n",
				strings.Join(short, "\n")
		}
		m.Write(intro)
		m.quoteAtMost(share, list+"\n")
		for _, cut := range l.Cut {
			m.Write(cut + ".\n\n")
		}
	case l.Err == nil:
		m.Write("MCP server **" + text.Code(l.Name) + "** offers nothing.\n\n")
	}
}

// WriteError writes why an operation of an MCP server failed. If the error ends the turn, it
// returns the error instead.
func (m MCP) WriteError(ctx context.Context, err error) error {
	var unknown *mcp.UnknownNameError
	var refused *jsonrpc.Error
	message := err.Error()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, backend.ErrCancelled), errors.Is(err, backend.ErrClosed),
		errors.Is(err, backend.ErrFenced),
		errors.Is(err, backend.ErrTurnOver):
		return err
	case errors.As(err, &unknown):
		return m.Refuse("This did not work: " + text.Printable(message) + ". " +
			m.typed("tools") + " lists what they offer." + m.unstarted() + "\n")
	case errors.As(err, &refused):
		message = refused.Message
	}
	return m.Refuse(
		"This did not work: " + text.Truncate(text.Printable(message), maxError) + ".\n")
}

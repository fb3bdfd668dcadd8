package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Limits on the text that is shown of a server, in bytes.
const (
	maxError        = 2 << 10
	maxSchema       = 1 << 10
	maxInstructions = 8 << 10
)

// AnswerMCP answers a prompt that calls /mcp, in a session with another backend.
func AnswerMCP(
	ctx context.Context, params backend.Raw, h backend.Host, u backend.Updates,
) (backend.Raw, error) {
	s := newSession(h, defaultLimits)
	s.foreign = true
	return s.run(ctx, params, u, (*turn).mcp)
}

// mcp answers /mcp.
func (t *turn) mcp(ctx context.Context, p prompt) error {
	verb, rest := text.CutWord(p.text)
	switch {
	case verb == "":
		return t.showServers()
	case verb == "tools" && rest == "":
		return t.showTools(ctx)
	case verb == "start" && rest != "":
		return t.startServer(ctx, rest)
	case verb == "read" && rest != "":
		return t.readResource(ctx, rest)
	default:
		return t.write("Use " + text.Code("/mcp") + ", " + text.Code("/mcp tools") + ", " +
			text.Code("/mcp start NAME") + " or " + text.Code("/mcp read SERVER URI") + ".\n")
	}
}

// readResource answers /mcp read. As the name of a server may contain spaces, the URI is the last
// word.
func (t *turn) readResource(ctx context.Context, argument string) error {
	i := strings.LastIndexAny(argument, " \t\r\n")
	if i < 0 {
		return t.write("Give a server and the URI of one of its resources: " +
			text.Code("/mcp read SERVER URI") + ". " + text.Code("/mcp tools") + " lists them.\n")
	}
	server, uri := strings.TrimSpace(argument[:i]), argument[i+1:]
	result, err := t.host.Tools().ReadResource(ctx, server, uri)
	if err != nil {
		return t.writeServerError(ctx, err)
	}
	return t.showResult("MCP server "+text.Code(server)+" returned", result)
}

// serverPrompt answers /SERVER:PROMPT.
func (t *turn) serverPrompt(ctx context.Context, p prompt) error {
	if err := t.flush(); err != nil {
		return err
	}
	result, err := t.host.Tools().Prompt(ctx, p.command, p.text)
	if err != nil {
		return t.writeServerError(ctx, err)
	}
	return t.showResult("The prompt "+text.Code(p.command)+" returned", result)
}

// showServers shows the session's MCP servers and those configured in the roots. It starts none.
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
	for _, r := range t.roots {
		var lines []string
		for _, a := range t.host.Catalog().Of(discovery.MCPServer) {
			if a.Root.Index == r.Index {
				lines = append(lines, t.describeConfigured(r, a)...)
			}
		}
		if len(lines) == 0 {
			continue
		}
		if err := t.write("MCP servers configured in "); err != nil {
			return err
		}
		if err := t.writeGroup(r, append(lines, t.limitsReached(r)...)); err != nil {
			return err
		}
	}
	return nil
}

// describeServer describes a server of the session. Names and texts that come from it are quoted.
func describeServer(s mcp.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "MCP server **%s** (%s): %s\n\n", text.Code(s.Name), s.Transport,
		describeServerState(s))
	if s.Prefix != s.Name {
		fmt.Fprintf(&b, "- its tools are called %s\n", text.Code(s.Prefix+".…"))
	}
	if s.Revision != "" {
		era := "legacy era: it requests roots itself"
		if s.Modern {
			era = "modern era: it requests roots in the results of calls"
		}
		fmt.Fprintf(&b, "- product: %s\n- protocol: %s, %s\n",
			text.Code(text.Truncate(s.Product, maxDescription)),
			text.Code(text.Truncate(s.Revision, maxDescription)), era)
	}
	switch {
	case !s.SentAt.IsZero():
		fmt.Fprintf(&b, "- received %s at %s:\n", text.Count(len(s.SentRoots), "root", "roots"),
			s.SentAt.Format(time.RFC3339))
		for i, uri := range s.SentRoots {
			fmt.Fprintf(&b, "  %d. %s\n", i+1, text.Code(uri))
		}
	case s.Revision == "":
	case !s.RootsDeclared:
		b.WriteString("- received no roots: it may not request them\n")
	default:
		b.WriteString("- received no roots: it has not requested them\n")
	}
	if s.Restarts > 0 {
		fmt.Fprintf(&b, "- restarted: %s\n", text.Count(s.Restarts, "time", "times"))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(&b, "- warning: %s\n", text.Printable(warning))
	}
	if s.Err != nil {
		fmt.Fprintf(&b, "- error: %s\n", text.Code(text.Truncate(s.Err.Error(), maxError)))
	}
	if instructions := text.Plain(s.Instructions); strings.TrimSpace(instructions) != "" {
		b.WriteString("- instructions of the server:\n\n" +
			text.Block("text", text.Truncate(instructions, maxInstructions)))
	}
	return b.String()
}

func describeServerState(s mcp.Status) string {
	soon := func(at time.Time) string {
		return max(time.Until(at), time.Second).Round(time.Second).String()
	}
	switch {
	case s.State == mcp.PassedOn:
		return "passed on to the agent, which connects it; " + text.Code("/mcp tools") +
			" connects it a second time to show what it offers"
	case s.State == mcp.Idle:
		return "idle; it starts when it is first used, for example by " + text.Code("/mcp tools")
	case s.State == mcp.Waiting && !s.RetryAt.IsZero():
		return "waiting; it ended and will be restarted in " + soon(s.RetryAt)
	case s.State == mcp.Waiting:
		return "waiting; it ended and will be restarted"
	case s.State == mcp.Failed && !s.RetryAt.IsZero():
		return "failed; it is tried again when it is next used, in " + soon(s.RetryAt) +
			" at the earliest"
	case s.State == mcp.Failed:
		return "failed; it is tried again when it is next used"
	case s.Waiting != "":
		return string(s.State) + "; " + s.Waiting
	default:
		return string(s.State)
	}
}

// describeConfigured describes a server configured in a root: its whole command without secrets,
// and how to start it.
func (t *turn) describeConfigured(r root, a discovery.Artifact) []string {
	if a.State != discovery.Active || a.Server == nil {
		return describeArtifact(r, a, "")
	}
	lines := []string{text.Printable(a.Name) + ": " + text.Printable(a.Server.String()), "  in " +
		r.showPath(a.Path)}
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
		lines = append(lines, "  "+text.Printable(d.String()))
	}
	switch {
	case t.isStarted(a):
		return append(lines, "  started in this session, see above")
	case t.hasServer(a.Name):
		return append(lines,
			"  found, not started: the client provides another server with this name")
	default:
		return append(lines, "  found, not started: /mcp start "+text.Printable(
			a.Name)+" starts it, if you allow it")
	}
}

// isStarted reports whether the session has a server that was found.
func (s *session) isStarted(a discovery.Artifact) bool {
	return slices.ContainsFunc(s.host.Tools().Servers(), func(started mcp.Status) bool {
		return started.Name == a.Name && started.File == a.Path
	})
}

// hasServer reports whether the session has an MCP server called name.
func (s *session) hasServer(name string) bool {
	return slices.ContainsFunc(s.host.Tools().Servers(),
		func(server mcp.Status) bool { return server.Name == name })
}

// unstarted says where to find the servers configured in the roots, "" if all are started.
func (t *turn) unstarted() string {
	for _, a := range t.host.Catalog().Active(discovery.MCPServer) {
		if !t.hasServer(a.Name) {
			return " " + text.Code("/mcp") +
				" shows those that the folders configure and that are not started."
		}
	}
	return ""
}

// startServer answers /mcp start. The host asks the user.
func (t *turn) startServer(ctx context.Context, name string) error {
	named := t.host.Catalog().Named(discovery.MCPServer, name)
	if len(named) == 0 {
		return t.write("No folder configures an MCP server called " +
			text.Code(text.Truncate(name, 200)) + ". " + text.Code("/mcp") +
			" lists the servers.\n")
	}
	a := named[0]
	switch {
	case a.State != discovery.Active:
		return t.write(fmt.Sprintf("The MCP server %s cannot be started: %s.\n", text.Code(name),
			text.Printable(a.Reason)))
	case t.hasServer(name) && !t.isStarted(a):
		return t.write(fmt.Sprintf("The MCP server %s was not started: the client provides "+
			"another server with this name.\n", text.Code(name)))
	}
	if err := t.host.StartServer(ctx, a); err != nil {
		return t.writeServerError(ctx, err)
	}
	for _, s := range t.host.Tools().Servers() {
		if s.Name == name && s.State == mcp.PassedOn {
			return t.write(describeServer(s))
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listings, err := t.host.Tools().List(ctx) // starts it
	if err != nil {
		return t.writeServerError(ctx, err)
	}
	for l := range listings {
		if l.Name == name {
			return t.write(describeServer(l.Status))
		}
	}
	return nil
}

// showTools answers /mcp tools: it shows what each server offers as soon as it is known, and starts
// servers if necessary.
func (t *turn) showTools(ctx context.Context) error {
	pending := map[string]bool{} // prefixes of the servers to come
	for _, s := range t.host.Tools().Servers() {
		pending[s.Prefix] = true
	}
	if len(pending) == 0 {
		return t.write("The session has no MCP servers." + t.unstarted() + "\n")
	}
	share := t.bound / len(pending) // of the answer, for each server
	listings, err := t.host.Tools().List(ctx)
	if err != nil {
		return t.writeServerError(ctx, err)
	}
	waiting := time.After(t.limits.waiting)
	for {
		select {
		case l, more := <-listings:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !more {
				return nil
			}
			delete(pending, l.Prefix)
			err = t.showListing(l, share)
		case <-waiting:
			err = t.showPending(pending)
		}
		if err == nil {
			err = t.flush()
		}
		if err != nil {
			return err
		}
	}
}

// showPending tells the user which servers they are waiting for, and why.
func (t *turn) showPending(pending map[string]bool) error {
	if err := t.write("Waiting for:\n\n"); err != nil {
		return err
	}
	for _, s := range t.host.Tools().Servers() {
		if !pending[s.Prefix] {
			continue
		}
		reason := "it has not listed what it offers"
		switch {
		case s.Waiting != "":
			reason = s.Waiting
		case s.Err != nil:
			reason = describeServerState(s) + ": " +
				text.Code(text.Truncate(s.Err.Error(), maxError))
		}
		if err := t.write("- " + text.Code(s.Name) + ": " + reason + "\n"); err != nil {
			return err
		}
	}
	return t.write("\n")
}

// showListing shows what a server offers in at most share bytes, and its status if there is
// something wrong with it.
func (t *turn) showListing(l mcp.Listing, share int) error {
	if l.Err != nil {
		if err := t.write(describeServer(l.Status) + "\n"); err != nil {
			return err
		}
	}
	var lines, short []string
	for _, tool := range l.Tools {
		described := describeTool(tool)
		if t.foreign { // has no /call
			described[0] = strings.Replace(described[0], "/call", "tool", 1)
		}
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
		if err := t.write(intro); err != nil {
			return err
		}
		if err := t.quoteAtMost(share, list+"\n"); err != nil {
			return err
		}
		for _, cut := range l.Cut {
			if err := t.write(cut + ".\n\n"); err != nil {
				return err
			}
		}
	case l.Err == nil:
		return t.write("MCP server **" + text.Code(l.Name) + "** offers nothing.\n\n")
	}
	return nil
}

// describeTool says how to call a tool, and what its server says about it.
func describeTool(tool mcp.Tool) []string {
	effect := "changes something"
	switch {
	case tool.Hints.ReadOnly:
		effect = "only reads"
	case tool.Hints.Destructive:
		effect = "may destroy data"
	}
	if tool.Hints.OpenWorld {
		effect += " and contacts other systems"
	}
	claim := "  according to its server it " + effect
	if tool.Hints.Unstated {
		claim = "  its server does not say whether it changes something"
	}
	title := text.Attributed("/call "+tool.Name, tool.Description, maxDescription)
	lines := []string{title, claim}
	if len(tool.Input) > 0 {
		var compact bytes.Buffer
		if json.Compact(&compact, tool.Input) != nil {
			compact.Reset()
			compact.Write(tool.Input)
		}
		lines = append(lines,
			"  input: "+text.Truncate(text.Printable(compact.String()), maxSchema))
	}
	return lines
}

// writeServerError writes why an operation of an MCP server failed. If the error ends the turn, it
// returns the error instead.
func (t *turn) writeServerError(ctx context.Context, err error) error {
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
		return t.write("This did not work: " + text.Printable(message) + ". " +
			text.Code("/mcp tools") + " lists what they offer." + t.unstarted() + "\n")
	case errors.As(err, &refused):
		message = refused.Message
	}
	return t.write("This did not work: " + text.Truncate(text.Printable(message), maxError) + ".\n")
}

package model

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

const (
	// maxServerText bounds the description of an MCP server's tool, in bytes.
	maxServerText = 2 << 10
	// afterServer separates an MCP server's name from a tool's in the names that the model uses.
	afterServer = "__"
)

// addServers adds the tools of the session's MCP servers. It waits for servers that are starting.
// If one is late, it is left out until it is ready, without waiting again.
func (b *toolbox) addServers(ctx context.Context, m mode) error {
	servers := b.turn.host.Tools().Servers()
	if len(servers) == 0 {
		return nil
	}
	found, err := b.turn.awaitServers(ctx, servers)
	if err != nil {
		return err
	}
	var withResources []mcp.Listing
	var lists [][]mcp.Tool
	for _, s := range servers {
		l := found[s.Prefix]
		if len(l.Resources) > 0 {
			withResources = append(withResources, l)
		}
		lists = append(lists, slices.DeleteFunc(slices.Clone(l.Tools),
			func(t mcp.Tool) bool { return !m.mayChange() && !t.Hints.ReadOnly }))
	}
	if withResources != nil {
		b.add(resourceTool(withResources))
	}
	left := b.turn.endpoint.shares().serverTools
	for _, t := range inTurns(lists) {
		const around = 150 // bytes of its names and of what is said about its server
		if left -= around + len(t.Input) + min(len(t.Description), maxServerText); left < 0 {
			b.crowded = append(b.crowded, t.Name)
			continue
		}
		b.addRemote(t)
	}
	return nil
}

// awaitServers returns what servers offer, by prefix. It tells the user about those that have
// failed or are late.
func (t *modelTurn) awaitServers(
	ctx context.Context, servers []mcp.Status,
) (found map[string]mcp.Listing, err error) {
	listings, err := t.host.Tools().List(ctx)
	if err != nil {
		return nil, err
	}
	before, waiting := t.notes.late, map[string]bool{}
	for _, s := range servers {
		waiting[s.Prefix] = true
	}
	found = map[string]mcp.Listing{}
	late := time.After(t.backend.serverPatience)
	isAwaited := func(s mcp.Status) bool {
		return waiting[s.Prefix] && (!before[s.Prefix] || s.State == mcp.Ready || s.Err != nil)
	}
	for open := true; open && slices.ContainsFunc(servers, isAwaited); {
		select {
		case l, more := <-listings:
			open = more
			delete(waiting, l.Prefix)
			found[l.Prefix] = l
			if err := t.noteFailure(ctx, l); err != nil {
				return nil, err
			}
		case <-late:
			open = false
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for _, s := range t.host.Tools().Servers() { // as they are now
		if waiting[s.Prefix] && !before[s.Prefix] &&
			(s.State == mcp.Starting || s.State == mcp.Idle) {
			if err := t.noteLate(ctx, s); err != nil {
				return nil, err
			}
		}
	}
	t.notes.late = waiting
	return found, nil
}

// inTurns returns the first tool of each server, then the second of each, and so on. If the model
// does not get all, a server with many tools does not displace those of another one.
func inTurns(lists [][]mcp.Tool) (all []mcp.Tool) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, list := range lists {
			if i < len(list) {
				all, more = append(all, list[i]), true
			}
		}
	}
	return all
}

// noteLate tells the user that the tools of an MCP server are missing because it is still starting.
func (t *modelTurn) noteLate(ctx context.Context, s mcp.Status) error {
	why := ""
	if s.Waiting != "" {
		why = " (" + text.Line(s.Waiting, 200) + ")"
	}
	return t.note(ctx, fmt.Sprintf("\n\nThe MCP server %s is still starting%s. The model begins "+
		"without its tools, and gets them when it is ready.\n\n", text.Code(text.Name(s.Name)), why))
}

// noteUnoffered returns the names of the tools that the model does not get in this step. It tells
// the user about them, once each.
func (b *toolbox) noteUnoffered(ctx context.Context) (unoffered []string, err error) {
	t := b.turn
	_, left := t.endpoint.Offer(b.offered)
	unoffered = slices.Concat(left, b.crowded)
	names := slices.DeleteFunc(slices.Clone(unoffered),
		func(name string) bool { return t.notes.noted[name] })
	if len(names) == 0 {
		return unoffered, nil
	}
	for _, name := range names {
		t.notes.noted[name] = true
	}
	return unoffered, t.note(ctx, fmt.Sprintf("\n\nThe model continues without %s of MCP servers, because its "+
		"server does not accept them or they do not fit into its context: %s.\n\n",
		text.Count(len(names), "tool", "tools"), listNames(names, maxNamed)))
}

// maxNamed is how many names of tools a person will read.
const maxNamed = 30

// listNames lists names, up to a number.
func listNames(names []string, most int) string {
	said := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}

// noteFailure tells the user why an MCP server has no tools, once until it has some.
func (t *modelTurn) noteFailure(ctx context.Context, l mcp.Listing) error {
	broken, told := l.Err != nil && len(l.Tools) == 0, t.notes.broken[l.Prefix]
	t.notes.broken[l.Prefix] = broken
	if !broken || told {
		return nil
	}
	reason := text.Line(sentence(l.Err), 500)
	return t.note(ctx, "\n\n"+reason+". The model continues without its tools.\n\n")
}

// addRemote adds a tool of an MCP server under a name that models accept.
func (b *toolbox) addRemote(t mcp.Tool) {
	written := strings.Replace(t.Name, ".", afterServer, 1)
	if strings.IndexAny(written, "-_0123456789") == 0 { // Kimi wants a letter
		written = "mcp_" + written
	}
	name := text.Prefix(text.Identifier(written), maxName)
	if _, taken := b.byName[name]; taken || name != written {
		hash := sha256.Sum256([]byte(t.Name))
		name = text.Prefix(fmt.Sprintf("%s_%x", text.Prefix(name, maxName-9), hash), maxName)
	}
	if _, taken := b.byName[name]; taken {
		return // another server already uses this name
	}
	described := tools.Tool{
		Name: name, InputSchema: t.Input,
		Annotations: tools.Annotations{ReadOnly: t.Hints.ReadOnly},
		Description: fmt.Sprintf("Tool of the MCP server %s. %s",
			text.Quote(text.Truncate(t.Server, 100)),
			text.Plain(text.Truncate(cmp.Or(t.Description, t.Title), maxServerText))),
	}
	run := func(c *modelCall, ctx context.Context) (outcome, error) { return c.runRemote(ctx, t.Name) }
	b.add(tool{Tool: described, run: run, callTitle: t.CallTitle()})
}

// serverOf returns the prefix of the MCP server whose tool the model calls by this name, or "" if
// it is not a server's tool.
func serverOf(tool string, servers []mcp.Status) (prefix string) {
	for _, s := range servers {
		if strings.HasPrefix(tool, s.Prefix+afterServer) && len(s.Prefix) > len(prefix) {
			prefix = s.Prefix
		}
	}
	return prefix
}

// runRemote calls the tool of an MCP server by its full name.
func (c *modelCall) runRemote(ctx context.Context, name string) (outcome, error) {
	// The user may have changed the mode since the step began.
	if set, _ := c.turn.current(); !set.Mode.mayChange() && !c.tool.Annotations.ReadOnly {
		return outcome{said: errModeReads.Error(), failed: true}, nil
	}
	c.phase = callRunning
	result, err := c.turn.host.Tools().Call(ctx, c.turn.updates, backend.ToolRequest{
		Name: name, Arguments: backend.Raw(c.Arguments), ID: sdk.ToolCallId(c.ID),
	})
	switch {
	case err != nil && endsTurn(ctx, err):
		return outcome{}, err
	case err != nil:
		return outcome{said: err.Error(), failed: true}, nil
	}
	said, media := c.turn.fromServer(result)
	return outcome{said: said, media: media, failed: result.Failed, shown: true}, nil
}

// fromServer returns the result of an MCP server's tool for the model.
func (t *modelTurn) fromServer(r backend.ToolResult) (string, []llm.Part) {
	var said strings.Builder
	var media []llm.Part
	for _, raw := range r.Content {
		var block struct {
			Type, Text, URI, MIMEType string
			Data                      []byte
			Resource                  struct {
				URI, Text string
				Blob      []byte
			}
		}
		if json.Unmarshal(raw, &block) != nil {
			continue
		}
		switch block.Type {
		case "text":
			said.WriteString(block.Text + "\n")
		case "resource":
			content := block.Resource.Text
			if blob := block.Resource.Blob; utf8.Valid(blob) && bytes.IndexByte(blob, 0) < 0 {
				content = cmp.Or(content, string(blob))
			}
			content = cmp.Or(content, "[This is not text.]")
			fmt.Fprintf(&said, "%s:\n%s\n", block.Resource.URI, content)
		case "resource_link":
			fmt.Fprintf(&said, "[A link to %s.]\n", block.URI)
		default:
			note, shown := t.picture(cmp.Or(block.MIMEType, block.Type), block.Data)
			said.WriteString(note)
			media = append(media, shown...)
		}
	}
	said.Write(r.Structured)
	switch empty := said.Len() == 0 && len(media) == 0; {
	case empty && r.Failed:
		said.WriteString("[The tool failed, and its server does not say why.]")
	case empty:
		said.WriteString("[The result is empty.]")
	}
	result := said.String()
	if size := len(result); size > maxResult {
		result = text.Prefix(result, maxResult) + "\n[… truncated: the result has " +
			text.Size(size) + ". Ask the tool for less at a time to see the rest.]"
	}
	if r.Cut != "" {
		result += "\n[" + r.Cut + ".]"
	}
	return result, media
}

package model

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

const (
	// maxParallel is how many calls that only read run at the same time.
	maxParallel = 8
	// maxServerText bounds the description of an MCP server's tool, in bytes.
	maxServerText = 2 << 10
)

// toolState holds a session's state for its tools. Only the turn uses it.
type toolState struct {
	own      []tools.Tool       // those that are not of MCP servers
	mentions discovery.Mentions // of instructions, in results
	allowed  map[command]bool   // commands that need no further permission
	late     map[string]bool    // prefixes of MCP servers that did not answer in time when they were last asked for their tools
	broken   map[string]bool    // prefixes of MCP servers that have failed, as the user was told
}

// toolbox holds the tools that the model has in a turn's step.
type toolbox struct {
	turn   *turn
	tools  []llm.Tool
	byName map[string]tool
}

// tool is a tool of the model.
type tool struct {
	tools.Tool
	// remote is the full name of the tool of an MCP server, "" for others.
	remote string
}

// isParallel reports whether calls neither change anything nor ask the user, so that they can run
// at the same time.
func (t tool) isParallel() bool {
	return t.Annotations.ReadOnly && t.Name != planName && t.remote == ""
}

// newToolbox returns the tools that the model may use in a mode.
func (t *turn) newToolbox(ctx context.Context, m mode) (*toolbox, error) {
	b := &toolbox{turn: t, byName: map[string]tool{}}
	if t.tools.own == nil {
		permit := func(ctx context.Context, c tools.Change) error { return callOf(ctx).permit(ctx, c) }
		t.tools.own = append(tools.New(t.host.Workspace(), tools.Options{Permit: permit}).Tools(), planTool())
		if t.backend.terminal {
			t.tools.own = append(t.tools.own, commandTool())
		}
	}
	for _, own := range t.tools.own {
		if m.mayChange() || own.Annotations.ReadOnly {
			b.add(tool{Tool: own})
		}
	}
	return b, b.addServers(ctx, m)
}

func (b *toolbox) add(t tool) {
	b.byName[t.Name] = t
	b.tools = append(b.tools, llm.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema})
}

// addServers adds the tools of the session's MCP servers. It waits for those that are starting, but
// only once for one that is late, which is left out until it is ready.
func (b *toolbox) addServers(ctx context.Context, m mode) error {
	servers := b.turn.host.Tools().Servers()
	if len(servers) == 0 {
		return nil
	}
	listings, err := b.turn.host.Tools().List(ctx)
	if err != nil {
		return err
	}
	state := &b.turn.tools
	waiting := map[string]bool{}
	for _, s := range servers {
		waiting[s.Prefix] = true
		if state.late[s.Prefix] && s.Err != nil { // it has failed since, and is not waited for
			if err := b.turn.noteFailure(ctx, backend.Listing{ServerStatus: s}); err != nil {
				return err
			}
		}
	}
	found := map[string][]backend.Tool{}
	late := time.NewTimer(b.turn.backend.serverPatience)
	defer late.Stop()
	for open := true; open && slices.ContainsFunc(servers, func(s backend.ServerStatus) bool {
		return waiting[s.Prefix] && (!state.late[s.Prefix] || s.State == backend.ServerReady)
	}); {
		select {
		case l, more := <-listings:
			open = more
			delete(waiting, l.Prefix)
			found[l.Prefix] = l.Tools
			if err := b.turn.noteFailure(ctx, l); err != nil {
				return err
			}
		case <-late.C:
			open = false
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	state.late = waiting
	for _, s := range servers {
		for _, t := range found[s.Prefix] {
			if m.mayChange() || t.Hints.ReadOnly {
				b.addRemote(t)
			}
		}
	}
	return nil
}

// noteFailure tells the user why an MCP server has no tools, once until it has some.
func (t *turn) noteFailure(ctx context.Context, l backend.Listing) error {
	if t.tools.broken == nil {
		t.tools.broken = map[string]bool{}
	}
	broken, told := l.Err != nil && len(l.Tools) == 0, t.tools.broken[l.Prefix]
	t.tools.broken[l.Prefix] = broken
	if !broken || told {
		return nil
	}
	return t.note(ctx, "\n\n"+text.Line(sentence(l.Err), 500)+". The model does without its tools.\n\n")
}

// afterServer separates an MCP server's name from a tool's in the names that the model uses.
const afterServer = "__"

// addRemote adds a tool of an MCP server under a name that models accept.
func (b *toolbox) addRemote(t backend.Tool) {
	const maxName = 64
	name := strings.Replace(t.Name, ".", afterServer, 1)
	if _, taken := b.byName[name]; taken || len(name) > maxName {
		name = fmt.Sprintf("%s_%x", text.Prefix(name, maxName-9), sha256.Sum256([]byte(t.Name)))[:maxName]
	}
	if _, taken := b.byName[name]; taken {
		return // another server has made up this name
	}
	described := tools.Tool{
		Name: name, InputSchema: t.Input, Annotations: tools.Annotations{ReadOnly: t.Hints.ReadOnly},
		Description: fmt.Sprintf("Tool of the MCP server %s. ", text.Quote(text.Truncate(t.Server, 100))) +
			text.Plain(text.Truncate(cmp.Or(t.Description, t.Title), maxServerText)),
	}
	if len(described.InputSchema) == 0 {
		described.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	b.add(tool{Tool: described, remote: t.Name})
}

// run runs the tool calls of an answer and shows them to the user, which makes them and their
// results part of the conversation: see meta. Those that only read run at the same time, the others
// one after the other. An error ends the turn.
func (b *toolbox) run(ctx context.Context, asked []llm.ToolCall) error {
	calls := make([]*call, len(asked))
	var err error
	for i, c := range asked {
		calls[i] = b.newCall(c)
		if calls[i].tool.remote == "" && err == nil { // a server's tool announces itself
			err = calls[i].announce(ctx)
		}
	}
	for i, n := 0, 1; i < len(calls) && err == nil; i, n = i+n, 1 {
		for calls[i].tool.isParallel() && i+n < len(calls) && calls[i+n].tool.isParallel() {
			n++
		}
		err = runTogether(ctx, calls[i:i+n])
	}
	for _, c := range calls {
		if c.announced && !c.ended {
			_ = c.end(ctx, interrupted, nil, failed) // the turn ends for another reason
		}
	}
	return err
}

// runTogether runs calls at the same time and returns the first error.
func runTogether(ctx context.Context, calls []*call) error {
	errs := make([]error, len(calls))
	slots := make(chan struct{}, maxParallel)
	var running sync.WaitGroup
	for i, c := range calls {
		slots <- struct{}{}
		running.Go(func() {
			errs[i] = c.run(ctx)
			<-slots
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (b *toolbox) names() string {
	var names []string
	for _, t := range b.tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

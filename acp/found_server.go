package acp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/servers/found"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// StartServer implements [commands.Session]: it starts an MCP server that was found in a root, if the user allows that now or has
// allowed it permanently: the session is opened again with it, in place of one that was found under
// the same name, as /roots does with folders.
func (o *ownTurn) StartServer(ctx context.Context, artifact discovery.Artifact) error {
	s, w := o.session, o.Workspace()
	server, err := found.New(artifact, w.Checked(permission.Confirmed)) // they are asked below
	if err != nil {
		return err
	}
	c := server.Config
	if why := o.agent.info().transports.refusal(c.Name, c.Transport); why != "" {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", why)
	}
	if err := o.agent.applyPolicy(&server.Start); err != nil {
		return err
	}
	user := s.For(backend.Sender{Decided: true}) // it is not about the agent, so it is not recorded
	if err := server.Ask(ctx, user, o.agent.consents(), w); err != nil {
		return err
	}
	if err := server.CheckDir(w); err != nil { // the user may have taken a while
		return err
	}
	p := s.params
	p.replaceFound(func(c mcpclient.Config) bool { return c.Name == server.Start.Name }, server.Start)
	return o.reopen(ctx, p)
}

// replaceFound removes those of the servers found in roots for which old returns true, and adds
// others.
func (p *sessionParams) replaceFound(old func(mcpclient.Config) bool, added ...mcpclient.Config) {
	isOld := func(c mcpclient.Config) bool { return c.File != "" && old(c) }
	if len(added) == 0 && !slices.ContainsFunc(p.servers, isOld) {
		return
	}
	var entries, kept []backend.Raw
	_ = json.Unmarshal(strictjson.Find(p.rest, protocol.MCPServers), &entries) // it was checked
	servers := p.servers
	p.servers = nil
	for i, c := range servers {
		if !isOld(c) {
			p.servers, kept = append(p.servers, c), append(kept, entries[i])
		}
	}
	for _, c := range added {
		p.servers, kept = append(p.servers, c), append(kept, foundEntry(c))
	}
	list, _ := strictjson.Append(nil, kept...)
	p.rest = strictjson.Set(p.rest, protocol.MCPServers, list)
}

// foundEntry returns a server found in a root as an entry of mcpServers.
func foundEntry(c mcpclient.Config) backend.Raw {
	entry := map[string]any{"name": c.Name}
	if c.Transport == mcp.Stdio {
		entry["command"], entry["args"] = c.Command, append([]string{}, c.Args...)
		entry["env"] = append([]mcpclient.Pair{}, c.Env...)
		entry["_meta"] = backend.FoundMeta(c.Dir)
	} else {
		entry["type"], entry["url"] = c.Transport, c.URL
		entry["headers"] = append([]mcpclient.Pair{}, c.Headers...)
	}
	return backend.Encode(entry)
}

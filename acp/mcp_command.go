package acp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// The adapter answers the slash command /mcp for backends that do not answer it themselves. If the
// session's agent connects the MCP servers, the adapter starts them a second time when the command
// needs them. A server that the user starts from a folder is passed to the agent: the session is
// opened again with it, as /roots does with folders.

// commandHost is the host of a turn that answers /mcp. It is that of the session, also after the
// session was opened again.
type commandHost struct {
	backend.Host
	turn *ownTurn
}

// Tools implements [backend.Host].
func (h *commandHost) Tools() backend.Tools { return h.turn.session.Tools() }

// passedTools gives access to the servers of a session whose agent connects them. They are
// connected here only to show the user what they offer.
type passedTools struct{ backend.Tools }

// Servers implements [backend.Tools].
func (t passedTools) Servers() []mcp.Status {
	all := t.Tools.Servers()
	for i := range all {
		if all[i].State == mcp.Idle {
			all[i].State = mcp.PassedOn
		}
	}
	return all
}

// StartServer implements [backend.Host].
func (h *commandHost) StartServer(ctx context.Context, found discovery.Artifact) error {
	o := h.turn
	if o.agent.info().MCP == backend.AdapterConnects {
		return o.session.StartServer(ctx, found)
	}
	config, err := o.session.allowServer(ctx, found)
	if err != nil {
		return err
	}
	return o.passServer(config)
}

// passServer makes the agent connect a server that was found in a root. It opens the session again
// with that server added, in place of one found under the same name.
func (o *ownTurn) passServer(config mcpclient.Config) error {
	p := o.session.params
	var entries []backend.Raw
	if list := strictjson.Find(p.rest, protocol.MCPServers); len(list) > 0 {
		if err := json.Unmarshal(list, &entries); err != nil {
			return err
		}
	}
	p.servers = nil
	var kept []backend.Raw
	for i, c := range o.session.params.servers {
		if c.File == "" || c.Name != config.Name {
			p.servers, kept = append(p.servers, c), append(kept, entries[i])
		}
	}
	p.servers = append(p.servers, config)
	list, _ := strictjson.Append(nil, append(kept, foundEntry(config))...)
	p.rest = strictjson.Set(p.rest, protocol.MCPServers, list)
	if err := o.reopen(p); err != nil {
		return fmt.Errorf("the agent does not take the server: %w", err)
	}
	return nil
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

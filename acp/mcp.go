package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/servers"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// newServers returns an empty set of MCP servers for a session.
func (a *adapter) newServers(id sessionstore.ID) *servers.Set {
	options := a.options.tuning.MCP
	options.Logger = options.Logger.With("session", id)
	options.Elicitation = a.connection.clientCapabilities().elicitationModes()
	return servers.NewSet(a.starting, options)
}

// prepareServers prepares the MCP servers of a session with the roots of w.
func (a *adapter) prepareServers(
	set *servers.Set, w *workspace.Workspace, configs []mcpclient.Config,
) (*mcpclient.Change, error) {
	configs = slices.Clone(configs)
	for i := range configs {
		if err := a.applyPolicy(&configs[i]); err != nil {
			return nil, err
		}
	}
	change, err := set.Prepare(w, configs)
	if many := (*mcpclient.TooManyError)(nil); errors.As(err, &many) {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", many)
	}
	return change, err
}

// applyPolicy makes c follow the policy. If it returns an error, the policy does not let a remote
// peer use the server.
func (a *adapter) applyPolicy(c *mcpclient.Config) error {
	policy := a.options.MCPPolicy(c.Name)
	if a.connection.peer.Remote {
		if err := checkRemote(policy, *c); err != nil {
			return err
		}
	}
	c.Apply(policy)
	c.Policy.Sandbox = a.serverSandbox(c.Policy.Sandbox)
	return nil
}

// checkRemote returns an error if a remote peer may not use the server. It does not quote the
// configuration, which for a server found in a root may hold values of our environment.
func checkRemote(p mcp.Policy, c mcpclient.Config) error {
	ok := p.URL != "" && c.URL == p.URL
	if c.Transport == mcp.Stdio {
		ok = len(p.Command) > 0 && len(c.Env) == 0 && c.Command == p.Command[0] &&
			slices.Equal(c.Args, p.Command[1:])
	}
	if ok {
		return nil
	}
	return stateError(jsonrpc.CodeInvalidParams, fmt.Sprintf("the operator of this server does "+
		"not allow the MCP server %s: use only those that are allowed by name, with the same "+
		"command line or URL, and without environment variables",
		text.Quote(text.Truncate(c.Name, 64))),
		reasonData{Reason: "server_not_allowed"})
}

// serverSandbox returns the sandbox of a server whose policy has its own. A server that the agent
// connects too is restricted as the agent is, or more if its policy says so.
func (a *adapter) serverSandbox(own backend.Sandbox) backend.Sandbox {
	s := a.info().ServerSandbox
	if !a.info().ConnectsServers || s.Mode == backend.SandboxOff {
		return own
	}
	if own.Mode == backend.SandboxStrict {
		s.Mode = own.Mode
	}
	if own.Mode != backend.SandboxOff {
		s.Ports, s.Hosts = s.Ports.And(own.Ports), s.Hosts.And(own.Hosts)
	}
	return s
}

// mcpTransports are the optional transports that initialize advertised.
type mcpTransports struct{ http, sse bool }

// refusal says why a server cannot be used and what to do, or returns "" if its transport was
// advertised.
func (m mcpTransports) refusal(server string, t mcp.Transport) string {
	if t == mcp.Stdio || t == mcp.HTTP && m.http || t == mcp.SSE && m.sse {
		return ""
	}
	instead := "the type stdio"
	if m.http {
		instead += ", or http, for which most servers have another address"
	}
	return fmt.Sprintf("the MCP server %s has the type %q, which was not advertised in "+
		"mcpCapabilities: use %s", text.Quote(text.Truncate(server, 64)),
		text.Truncate(string(t), 64), instead)
}

// decodeServers reads mcpServers. Its violations do not quote values, which may be secrets. A
// remote peer's servers may have no members that it does not check, because they are passed on.
func (a *adapter) decodeServers(
	v *strictjson.Violations, f strictjson.Field, p presence,
) []mcpclient.Config {
	if f.IsNull() || (!f.Present() && p == optional) {
		return nil
	}
	servers := []mcpclient.Config{}
	for _, entry := range v.Items(f.Masked()) {
		if object, ok := v.Object(entry); ok {
			c := decodeServer(v, object, a.info().transports)
			servers = append(servers, c)
			if a.connection.peer.Remote {
				refuseOthers(v, object, c.Transport)
			}
		}
	}
	return servers
}

// decodeServer reads an entry of mcpServers. Its members depend on the transport, by default stdio.
func decodeServer(
	v *strictjson.Violations, object strictjson.Object, offered mcpTransports,
) mcpclient.Config {
	c := mcpclient.Config{Name: v.Text(object.Field("name")), Transport: mcp.Stdio}
	if given := object.Field("type"); given.Present() {
		name, wrong := given.Text()
		c.Transport = mcp.Transport(name)
		if why := offered.refusal(c.Name, c.Transport); why != "" && wrong == nil {
			wrong = []strictjson.Violation{given.Refuse(strictjson.Unsupported).Expecting(why)}
		}
		if v.Add(wrong...); wrong != nil {
			return c
		}
	}
	if c.Transport == mcp.Stdio {
		c.Command = v.Text(object.Field("command"))
		c.Args = v.Texts(object.Field("args"))
		c.Env = decodePairs(v, object.Field("env"))
	} else {
		c.URL = v.Text(object.Field("url"))
		c.Headers = decodePairs(v, object.Field("headers"))
	}
	return c
}

// refuseOthers reports the members of a server that its transport does not have.
func refuseOthers(v *strictjson.Violations, object strictjson.Object, transport mcp.Transport) {
	known := []string{"name", "type", "url", "headers"}
	if transport == mcp.Stdio {
		known = []string{"name", "type", "command", "args", "env"}
	}
	for name, field := range object.Fields() {
		if !slices.Contains(known, name) && !field.IsNull() {
			v.Add(field.Refuse(strictjson.Unsupported).Expecting(
				"only what a server of this type needs"))
		}
	}
}

// decodePairs reads a list of {name, value}.
func decodePairs(v *strictjson.Violations, f strictjson.Field) []mcpclient.Pair {
	pairs := []mcpclient.Pair{}
	for _, entry := range v.Items(f) {
		if object, ok := v.Object(entry); ok {
			pairs = append(pairs, mcpclient.Pair{
				Name: v.Text(object.Field("name")), Value: v.Text(object.Field("value")),
			})
		}
	}
	return pairs
}

// withFound returns p without those of the servers found in roots for which old returns true, and
// with others.
func (p sessionParams) withFound(
	old func(mcpclient.Config) bool, added ...mcpclient.Config,
) sessionParams {
	isOld := func(c mcpclient.Config) bool { return c.File != "" && old(c) }
	if len(added) == 0 && !slices.ContainsFunc(p.servers, isOld) {
		return p
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
	return p
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

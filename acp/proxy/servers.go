package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// toolServerName is the name of our MCP server, unless the client has given it to another one.
const toolServerName = "acp_agent_roots"

// offersTools reports whether a child that learns of its roots from a prompt gets the server.
func (p *proxy) offersTools() bool {
	o := p.options
	return o.Profile.Roots.Tools != profiles.ToolsOff && o.RootsTools.Path != "" && o.RelayDir != ""
}

// askEnv returns the environment that makes the agent ask before it writes with the server's tools.
// It leaves out variables that the user has set.
func (p *proxy) askEnv() []string {
	if !p.offersTools() {
		return nil
	}
	env := slices.Clone(p.options.Profile.Roots.AskEnv)
	return slices.DeleteFunc(env, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return p.command.Getenv(name) != ""
	})
}

// servers are the MCP servers that a child gets for a session: those of the client, perhaps behind
// relays, and our tool server. It does not change.
type servers struct {
	*setup
	tells  bool    // our tool server tells the child what is in the roots
	relays *relays // nil if none of the servers has one; set before they have this user
}

// newServers returns the servers of a session, without relays.
func newServers(s *setup) *servers { return &servers{setup: s, tells: s.tellsByServer()} }

// useRelays lets the servers have the relays of those that they replace, or of another session, or
// new ones if some need them.
func (m *servers) useRelays(previous *servers, saved state) {
	if previous.relays.follow(previous, m) || m.proxy.joinRelays(m) {
		return
	}
	wraps := m.proxy.wrapsServers() && slices.ContainsFunc(listServers(m.params),
		func(server mcpServer) bool { return server.isStdio })
	saved.RootsMode = m.likelyMode()
	if m.wantsTools(saved) || m.tells || wraps {
		startRelays(m)
	}
}

// wantsTools reports whether the server has file tools for a child session. One that already has
// such a server gets it again even for a single root, because some agents keep a server that is no
// longer named.
func (m *servers) wantsTools(saved state) bool {
	return saved.RootsMode == profiles.RootsByContext && m.proxy.offersTools() &&
		(saved.SentTools || m.roots.Additional().Len() > 0)
}

// tool returns our tool server, if a child session has one. It has file tools for all roots if the
// child learns of its roots from a prompt. It asks us for the session's roots in each call, so it
// can use none once the session is closed. It can write only if the child is known to ask the user
// first, or if the user has allowed it. If the profile says that instructions of servers reach the
// model, its instructions tell the child what is in the roots; a server that is only needed for
// that has no file tools.
func (m *servers) tool(saved state) briefing.Server {
	files := m.wantsTools(saved)
	if m.relays == nil || saved.RefusesTools || !files && !m.tells {
		return briefing.Server{}
	}
	name, clients := toolServerName, listServers(m.params)
	isNamed := func(server mcpServer) bool { return server.Name == name }
	for n := 2; slices.ContainsFunc(clients, isNamed); n++ {
		name = fmt.Sprintf("%s_%d", toolServerName, n)
	}
	profile := m.proxy.options.Profile
	return briefing.Server{Name: name, Files: files,
		ReadOnly: profile.Roots.Tools != profiles.ToolsWrite && len(profile.Roots.AskEnv) == 0}
}

// withTool appends our tool server to the MCP servers in the params of a lifecycle request.
func (m *servers) withTool(params backend.Raw, tool briefing.Server) backend.Raw {
	if tool.Name == "" {
		return params
	}
	command := m.proxy.options.RootsTools
	args := append([]string{}, command.Args...)
	switch {
	case !tool.Files:
		args = append(args, "--tell-only")
	case tool.ReadOnly:
		args = append(args, "--read-only")
	}
	args = append(args, "--roots-from", m.relays.publisher.Address())
	server := sdk.McpServerStdio{
		Name: tool.Name, Command: command.Path, Args: args,
		Env: []sdk.EnvVariable{m.relays.secret()},
	}
	servers, ok := strictjson.Append(mcpServers(params), backend.Encode(server))
	if !ok {
		return params // the agent will report what is wrong with them
	}
	return strictjson.Set(params, protocol.MCPServers, servers)
}

// withRelays puts relays in front of stdio servers in the params of a lifecycle request: in front
// of all servers if relays tell them the roots, and otherwise only of those found in roots, which
// the relay starts as the user has allowed.
func (m *servers) withRelays(params backend.Raw) (backend.Raw, error) {
	var entries []json.RawMessage
	wrapped := false
	for _, server := range listServers(params) {
		asks, foundIn := m.relays != nil && m.proxy.wrapsServers(), backend.FoundDir(server.raw)
		if !server.isStdio || !asks && foundIn == "" {
			entries = append(entries, server.raw)
			continue
		}
		if foundIn != "" {
			if err := m.host.Workspace().HandOverDir(foundIn); err != nil {
				return nil, err
			}
		}
		if m.proxy.options.Relay.Path == "" {
			return nil, errors.New("an MCP server found in a folder needs a relay to be started")
		}
		r := m.relays
		if !asks {
			r = nil
		}
		entries, wrapped = append(entries, r.wrap(m.proxy.options.Relay, server, foundIn)), true
	}
	if !wrapped {
		return params, nil
	}
	list, _ := strictjson.Append(nil, entries...)
	return strictjson.Set(params, protocol.MCPServers, list), nil
}

// mcpServers returns the member mcpServers of the params of a lifecycle request, "[]" if it is
// missing or null.
func mcpServers(params backend.Raw) []byte {
	servers := strictjson.Find(params, protocol.MCPServers)
	if servers == nil || string(servers) == "null" {
		return []byte("[]")
	}
	return servers
}

// mcpServer is an entry of mcpServers.
type mcpServer struct {
	Name         string
	Type         *string
	Command      string
	Args         []string
	URL          string
	Env, Headers []sdk.EnvVariable

	raw     json.RawMessage
	isStdio bool
}

// listServers returns the entries of mcpServers. It returns none if they are malformed, because the
// agent will report the error.
func listServers(params backend.Raw) (servers []mcpServer) {
	var entries []json.RawMessage
	if json.Unmarshal(mcpServers(params), &entries) != nil {
		return nil
	}
	for _, entry := range entries {
		server := mcpServer{raw: entry}
		err := json.Unmarshal(entry, &server) // members of the wrong type are left out
		server.isStdio = err == nil && server.Command != "" &&
			(server.Type == nil || *server.Type == "stdio")
		servers = append(servers, server)
	}
	return servers
}

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/relays"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// toolServerName is the name of our MCP server, unless the client has given it to another one.
const toolServerName = "acp_agent_roots"

// wrapsServers reports whether the agent's stdio servers are started behind relays.
func (p *proxy) wrapsServers() bool {
	o := p.options
	return o.Profile.Roots.Relay && o.Relay.Path != "" && o.RelayDir != ""
}

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

// useRelays lets the session have relays: those of previous, which it replaces, unless others use
// them and the roots differ; those of another session; or new ones, if servers need them.
func (s *setup) useRelays(previous *setup, saved state) {
	follows := previous.relays.IsAlone() || s.sameRoots(previous)
	if follows && s.relays.Join(previous.relays) || s.joinOthers() {
		return
	}
	wraps := s.proxy.wrapsServers() && slices.ContainsFunc(listServers(s.params),
		func(server mcpServer) bool { return server.isStdio })
	saved.RootsMode = s.likelyMode(backend.Resume)
	needs := s.wantsTools(saved) || s.tells || wraps
	if needs && s.relays.Start(s.proxy.options.RelayDir) {
		s.proxy.secrets.Add(s.relays.Secret().Value)
	}
}

// joinOthers lets the session use the relays of another one, if it can. Some agents share MCP
// servers between the sessions of a working directory. There the relays of a session with the same
// roots and servers serve this one too, so that both can be in one process.
func (s *setup) joinOthers() bool {
	if s.roots.Additional().Len() == 0 {
		return false
	}
	for _, u := range s.proxy.childUses() {
		other := u.bridge.setup
		if u.shares && bytes.Equal(mcpServers(s.params), mcpServers(other.params)) &&
			s.sameRoots(other) && s.relays.Join(other.relays) {
			return true
		}
	}
	return false
}

// wantsTools reports whether the server has file tools for a child session. One that already has
// such a server gets it again even for a single root, because some agents keep a server that is no
// longer named.
func (s *setup) wantsTools(saved state) bool {
	return saved.RootsMode == profiles.RootsByContext && s.proxy.offersTools() &&
		(saved.SentTools || s.roots.Additional().Len() > 0)
}

// tool returns our tool server, if a child session has one. It has file tools for all roots if the
// child learns of its roots from a prompt. It asks us for the session's roots in each call, so it
// can use none once the session is closed. It can write only if the child is known to ask the user
// first, or if the user has allowed it. If the profile says that instructions of servers reach the
// model, its instructions tell the child what is in the roots; a server that is only needed for
// that has no file tools.
func (s *setup) tool(saved state) briefing.Server {
	files := s.wantsTools(saved)
	if !s.relays.Listens() || saved.RefusesTools || !files && !s.tells {
		return briefing.Server{}
	}
	name, clients := toolServerName, listServers(s.params)
	isNamed := func(server mcpServer) bool { return server.Name == name }
	for n := 2; slices.ContainsFunc(clients, isNamed); n++ {
		name = fmt.Sprintf("%s_%d", toolServerName, n)
	}
	profile := s.proxy.options.Profile
	return briefing.Server{Name: name, Files: files,
		ReadOnly: profile.Roots.Tools != profiles.ToolsWrite && len(profile.Roots.AskEnv) == 0}
}

// withTool appends our tool server to the MCP servers in the params of a lifecycle request, if the
// child session has one.
func (s *setup) withTool(params backend.Raw, saved state) backend.Raw {
	tool := s.tool(saved)
	if tool.Name == "" {
		return params
	}
	command := s.proxy.options.RootsTools
	args := append([]string{}, command.Args...)
	switch {
	case !tool.Files:
		args = append(args, "--tell-only")
	case tool.ReadOnly:
		args = append(args, "--read-only")
	}
	args = append(args, "--roots-from", s.relays.Address())
	server := sdk.McpServerStdio{
		Name: tool.Name, Command: command.Path, Args: args,
		Env: []sdk.EnvVariable{s.relays.Secret()},
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
func (s *setup) withRelays(params backend.Raw) (backend.Raw, error) {
	var entries []json.RawMessage
	wrapped := false
	for _, server := range listServers(params) {
		asks, foundIn := s.relays.Listens() && s.proxy.wrapsServers(), backend.FoundDir(server.raw)
		if !server.isStdio || !asks && foundIn == "" {
			entries = append(entries, server.raw)
			continue
		}
		if foundIn != "" {
			if err := s.host.Workspace().HandOverDir(foundIn); err != nil {
				return nil, err
			}
		}
		if s.proxy.options.Relay.Path == "" {
			return nil, errors.New("an MCP server found in a folder needs a relay to be started")
		}
		by := s.relays
		if !asks {
			by = relays.New(s.host, s.proxy.log)
		}
		entries, wrapped = append(entries, wrap(by, s.proxy.options.Relay, server, foundIn)), true
	}
	if !wrapped {
		return params, nil
	}
	list, _ := strictjson.Append(nil, entries...)
	return strictjson.Set(params, protocol.MCPServers, list), nil
}

// wrap puts one of the relays by in front of a stdio server, which was found in a folder if foundIn
// is not "". Its other members stay as they are. A server with a malformed environment is left to
// the agent, which will report the error.
func wrap(
	by *relays.Session, relay Command, server mcpServer, foundIn string,
) json.RawMessage {
	entry := server.raw
	if foundIn != "" {
		relay.Args = append(slices.Clone(relay.Args), "--found-in", foundIn)
		for _, v := range server.Env {
			relay.Args = append(relay.Args, "--env", v.Name)
		}
		entry = strictjson.Remove(entry, "_meta")
	}
	if by.Listens() {
		env, ok := strictjson.Append(strictjson.Find(entry, "env"), backend.Encode(by.Secret()))
		if !ok {
			return entry
		}
		entry = strictjson.Set(entry, "env", env)
	}
	command := by.Wrap(relay,
		Command{Path: server.Command, Args: server.Args, Name: server.Name})
	entry = strictjson.Set(entry, "command", backend.Encode(command.Path))
	return strictjson.Set(entry, "args", backend.Encode(command.Args))
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

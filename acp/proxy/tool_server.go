package proxy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// toolServerName is the name of our MCP server, unless the client has given it to another one.
const toolServerName = "acp_agent_roots"

// toolServer is an MCP server of ours with tools for all roots, for a child that is told about its
// roots in a prompt. It asks us for the session's roots in each call, so it has none once the
// session is closed.
type toolServer struct {
	name     string // "" for none
	readOnly bool
}

// ToolsMode says whether an agent that takes additional directories neither by the protocol nor by
// flags gets an MCP server with tools for them.
type ToolsMode string

// The choices of tools.
const (
	// ToolsOn means tools that read. If the agent is known to ask before it uses them, also tools
	// that write.
	ToolsOn    ToolsMode = ""
	ToolsWrite ToolsMode = "write" // tools that read and write
	ToolsOff   ToolsMode = "off"   // none
)

// ParseToolsMode parses on, write or off.
func ParseToolsMode(s string) (ToolsMode, error) {
	switch m := ToolsMode(s); m {
	case "on":
		return ToolsOn, nil
	case ToolsWrite, ToolsOff:
		return m, nil
	}
	return ToolsOn, fmt.Errorf("invalid choice of tools %q: use on, write or off", s)
}

// String returns the choice as ParseToolsMode reads it.
func (m ToolsMode) String() string { return cmp.Or(string(m), "on") }

// offersTools reports whether a child that is told about its roots in a prompt gets the server.
func (p *proxy) offersTools() bool {
	o := p.options
	return o.Profile.Tools != ToolsOff && o.RootsTools.Path != "" && o.RelayDir != ""
}

// wantsTools reports whether the server is for a child that is given its roots in the given way.
// sent says that the child session has the server already: it is given it again even if there is
// only one root, because some agents keep a server that is not named any more.
func (s *session) wantsTools(mode RootsMode, sent bool) bool {
	return mode == RootsByContext && s.proxy.offersTools() &&
		(sent || s.roots.Additional().Len() > 0)
}

// toolServer returns the server, if wantsTools. It can write only if the child is known to ask the
// user first, or if the user has allowed it.
func (s *session) toolServer(mode RootsMode, sent bool) toolServer {
	if s.relays == nil || !s.wantsTools(mode, sent) {
		return toolServer{}
	}
	var servers []struct{ Name string }
	_ = json.Unmarshal(mcpServers(s.params), &servers)
	taken := make(map[string]bool)
	for _, server := range servers {
		taken[server.Name] = true
	}
	name := toolServerName
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", toolServerName, n)
	}
	profile := s.proxy.options.Profile
	return toolServer{name: name, readOnly: profile.Tools != ToolsWrite && len(profile.AskEnv) == 0}
}

// askEnv returns the environment that makes the agent ask before it writes by the server's tools.
// Variables that the user has set are left alone.
func (p *proxy) askEnv() []string {
	if !p.offersTools() {
		return nil
	}
	set := slices.Concat(os.Environ(), p.command.Env)
	return slices.DeleteFunc(slices.Clone(p.options.Profile.AskEnv), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(set, func(v string) bool {
			return strings.HasPrefix(v, name+"=")
		})
	})
}

// withToolServer appends a tool server to the MCP servers in the params of a lifecycle request.
func (s *session) withToolServer(params backend.Raw, tools toolServer) (backend.Raw, error) {
	if tools.name == "" {
		return params, nil
	}
	command := s.proxy.options.RootsTools
	args := append([]string{}, command.Args...)
	if tools.readOnly {
		args = append(args, "--read-only")
	}
	args = append(args, "--roots-from", s.relays.publisher.Address())
	server := sdk.McpServerStdio{
		Name: tools.name, Command: command.Path, Args: args,
		Env: []sdk.EnvVariable{s.relays.secret()},
	}
	servers, ok := strictjson.Append(mcpServers(params), backend.Encode(server))
	if !ok {
		return params, nil // the agent will say what is wrong with them
	}
	return strictjson.Put(params, protocol.MCPServers, servers)
}

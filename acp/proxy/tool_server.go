package proxy

import (
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// toolServerName is the name of our MCP server, unless the client has given it to another one.
const toolServerName = "acp_agent_roots"

// toolServer is our own MCP server. It has file tools for all roots if the child learns of its
// roots from a prompt. It asks us for the session's roots in each call, so it can use none once the
// session is closed. If the profile says that instructions of servers reach the model, its
// instructions tell the child what is in the roots; a server that is only needed for that has no
// file tools.
type toolServer struct {
	name     string // "" for none
	files    bool   // it has tools for files
	readOnly bool   // that do not change them
}

// offersTools reports whether a child that learns of its roots from a prompt gets the server.
func (p *proxy) offersTools() bool {
	o := p.options
	return o.Profile.Roots.Tools != profiles.ToolsOff && o.RootsTools.Path != "" && o.RelayDir != ""
}

// wantsTools reports whether the server has file tools for a child that learns of its roots in the
// given way. A child session that already has such a server gets it again even for a single root,
// because some agents keep a server that is no longer named.
func (s *session) wantsTools(mode profiles.RootsMode, saved state) bool {
	return mode == profiles.RootsByContext && s.proxy.offersTools() &&
		(saved.SentTools || s.roots.Additional().Len() > 0)
}

// tellsByServer reports whether the server's instructions have something to tell a child that
// learns of its roots in the given way. It must be called before the session has relays.
func (s *session) tellsByServer(mode profiles.RootsMode) bool {
	if !s.proxy.options.Profile.Context.ByServer || !s.proxy.offersTools() {
		return false
	}
	return systemText(s.contextParts(mode)) != ""
}

// toolServer returns the server, if the session has one. saved is the state of the child session.
// It can write only if the child is known to ask the user first, or if the user has allowed it.
func (s *session) toolServer(mode profiles.RootsMode, saved state) toolServer {
	files := s.wantsTools(mode, saved)
	if s.relays == nil || s.refusesTools.Load() || !files && !s.tells {
		return toolServer{}
	}
	name, servers := toolServerName, listServers(s.params)
	isNamed := func(server mcpServer) bool { return server.Name == name }
	for n := 2; slices.ContainsFunc(servers, isNamed); n++ {
		name = fmt.Sprintf("%s_%d", toolServerName, n)
	}
	profile := s.proxy.options.Profile
	return toolServer{name: name, files: files,
		readOnly: profile.Roots.Tools != profiles.ToolsWrite && len(profile.Roots.AskEnv) == 0}
}

// refusedTools returns a text for the user about the child's refusal.
func (s *session) refusedTools(c *child, refused error) string {
	return fmt.Sprintf("%s does not take acp-agent's own MCP server, with tools for additional "+
		"folders: %s. The session goes on without it: the agent is told the folders' paths, and "+
		"reaches them with its own tools.\n\n", s.agentName(c),
		text.Line(refused.Error(), maxTitle))
}

// askEnv returns the environment that makes the agent ask before it writes with the server's tools.
// It leaves out variables that the user has set.
func (p *proxy) askEnv() []string {
	if !p.offersTools() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.options.Profile.Roots.AskEnv), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return p.command.Getenv(name) != ""
	})
}

// withToolServer appends a tool server to the MCP servers in the params of a lifecycle request.
func (s *session) withToolServer(params backend.Raw, tools toolServer) backend.Raw {
	if tools.name == "" {
		return params
	}
	command := s.proxy.options.RootsTools
	args := append([]string{}, command.Args...)
	switch {
	case !tools.files:
		args = append(args, "--tell-only")
	case tools.readOnly:
		args = append(args, "--read-only")
	}
	args = append(args, "--roots-from", s.relays.publisher.Address())
	server := sdk.McpServerStdio{
		Name: tools.name, Command: command.Path, Args: args,
		Env: []sdk.EnvVariable{s.relays.secret()},
	}
	servers, ok := strictjson.Append(mcpServers(params), backend.Encode(server))
	if !ok {
		return params // the agent will report what is wrong with them
	}
	return strictjson.Set(params, protocol.MCPServers, servers)
}

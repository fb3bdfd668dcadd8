package proxy

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// A child that is told of its roots in words can be given tools for them: an MCP server of ours among those
// of the session, on all roots, cwd first so that relative paths start there. Its roots are those of the
// lifecycle request that it came with, so that other roots need another one (A24).

// toolsName is what the server is called, unless the client has one of that name.
const toolsName = "acp_agent_roots"

// toolServer is the server as a child is given it.
type toolServer struct {
	name     string // "" if it is given none
	readOnly bool
}

// toolsFor is the server that a child which is given roots so is given too. Being in scope grants no write: its tools
// only read, unless the child is known to ask before it writes by them, or its user allows it (A30).
func (s *session) toolsFor(how profile.Way) toolServer {
	p := s.proxy
	if how != profile.ByContext || s.roots.Additional().Len() == 0 ||
		p.profile.Tools == profile.WithoutTools || p.options.RootsTools.Path == "" {
		return toolServer{}
	}
	taken := make(map[string]bool)
	for _, name := range serverNames(s.params) {
		taken[name] = true
	}
	name := toolsName
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", toolsName, n)
	}
	return toolServer{name: name, readOnly: p.profile.Tools != profile.WithWritingTools && len(p.profile.AskEnv) == 0}
}

// askEnv is what has the agent ask before it writes by the server's tools. A person who has set the same otherwise
// is obeyed.
func (p *proxy) askEnv() []string {
	if p.profile.Tools == profile.WithoutTools || p.options.RootsTools.Path == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.profile.AskEnv), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, set := os.LookupEnv(name)
		return set || slices.ContainsFunc(p.command.Env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
}

// serverNames are the names of the MCP servers in the params of a lifecycle request.
func serverNames(params backend.Raw) []string {
	var servers []struct{ Name string }
	_ = json.Unmarshal(serversIn(params), &servers) // an agent says what is wrong with them
	var names []string
	for _, server := range servers {
		names = append(names, server.Name)
	}
	return names
}

// pair is a variable in the environment of an MCP server.
type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// equipped are the params of a lifecycle request with the server behind the client's own.
func (s *session) equipped(params backend.Raw, tools toolServer) (backend.Raw, error) {
	if tools.name == "" {
		return params, nil
	}
	command := s.proxy.options.RootsTools
	args := append([]string{}, command.Args...)
	if tools.readOnly {
		args = append(args, "--read-only")
	}
	for _, dir := range s.roots.All() {
		args = append(args, "--root", dir.String())
	}
	server, err := json.Marshal(struct {
		Name    string   `json:"name"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
		Env     []pair   `json:"env"`
	}{tools.name, command.Path, args, []pair{}})
	if err != nil {
		return nil, err
	}
	servers, ok := appended(serversIn(params), server)
	if !ok {
		return params, nil // the agent says what is wrong with them
	}
	return strictjson.Put(params, serversMember, servers)
}

package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcprelay"
	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
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
func (s *session) toolsFor(how RootsMode) toolServer {
	p := s.proxy
	if how != RootsByContext || s.roots.Additional().Len() == 0 ||
		p.profile.Tools == ToolsOff || p.options.RootsTools.Path == "" {
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
	return toolServer{name: name, readOnly: p.profile.Tools != ToolsWrite && len(p.profile.AskEnv) == 0}
}

// askEnv is what has the agent ask before it writes by the server's tools. A person who has set the same otherwise
// is obeyed.
func (p *proxy) askEnv() []string {
	if p.profile.Tools == ToolsOff || p.options.RootsTools.Path == "" {
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

// A child starts the session's MCP servers itself, and tells them its own idea of the roots. If its profile says so, each of
// those that are processes is started behind a relay, which answers for the roots in the child's place (M1). Servers that are
// reached over HTTP are left alone, as is ours, which is given its roots.

// relays tell the relays of a session its roots. Activations that replace each other have them in common, so that a server
// which the child lets go on hears of the change (M3).
type relays struct {
	publisher *mcprelay.Publisher

	mu    sync.Mutex
	users []relayUser // the activations, the latest last
}

// relayUser is an activation, and the roots that it has shown.
type relayUser struct {
	session *session
	roots   mcproots.Snapshot
	shown   bool
}

// relaysFor are the relays of an activation: those of the one that it replaces, or new ones if the client gave it a server
// for them. Nil if it has none; without a socket the servers are started as the client says.
func (s *session) relaysFor(previous *session) *relays {
	p := s.proxy
	if !p.profile.Relay || p.options.Relay.Path == "" || p.options.RelayDir == "" {
		return nil
	}
	if previous != nil && previous.relays != nil {
		previous.relays.join(s)
		return previous.relays
	}
	if !slices.ContainsFunc(serverList(s.params), isProcess) {
		return nil
	}
	publisher, err := mcprelay.Listen(p.options.RelayDir, mcprelay.PublisherOptions{Logger: p.log})
	if err != nil {
		p.log.Warn("the agent's MCP servers are not told the session's roots", "error", err)
		return nil
	}
	r := &relays{publisher: publisher}
	r.join(s)
	r.show(s) // the child may start servers before it answers
	return r
}

// join makes s a user.
func (r *relays) join(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users = append(r.users, relayUser{session: s})
}

// show has the relays told the roots of s, which is a user. Nil has none to tell.
func (r *relays) show(s *session) {
	if r == nil {
		return
	}
	roots, err := mcproots.Take(s.host.Workspace())
	if err != nil {
		s.proxy.log.Warn("the agent's MCP servers are not told of other roots", "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.users {
		if r.users[i].session == s {
			r.users[i].roots, r.users[i].shown = roots, true
			r.publisher.Set(roots)
		}
	}
}

// leave undoes join: the roots are those of the user that is left, and without one the relays are told that the session has
// ended. It may be called more than once.
func (r *relays) leave(s *session) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	r.users = slices.DeleteFunc(r.users, func(u relayUser) bool { return u.session == s })
	left := len(r.users)
	if left > 0 && r.users[left-1].shown {
		r.publisher.Set(r.users[left-1].roots)
	}
	r.mu.Unlock()
	if left > 0 {
		return nil
	}
	return r.publisher.Close()
}

// serverList are the entries of mcpServers in the params of a lifecycle request; none if they are malformed.
func serverList(params backend.Raw) []json.RawMessage {
	var servers []json.RawMessage
	if json.Unmarshal(serversIn(params), &servers) != nil {
		return nil // an agent says what is wrong with them
	}
	return servers
}

// stdioServer is an entry of mcpServers that is a process.
type stdioServer struct {
	Type    *string
	Command *string
	Args    []string
}

// isProcess reports whether an entry of mcpServers is a process that can be started behind a relay.
func isProcess(server json.RawMessage) bool {
	var p stdioServer
	return json.Unmarshal(server, &p) == nil && p.Command != nil && *p.Command != "" && (p.Type == nil || *p.Type == "stdio")
}

// relayed are the params of a lifecycle request with a relay in front of each process among the servers.
func (s *session) relayed(params backend.Raw) (backend.Raw, error) {
	if s.relays == nil {
		return params, nil
	}
	servers := serverList(params)
	if !slices.ContainsFunc(servers, isProcess) {
		return params, nil
	}
	for i, server := range servers {
		if !isProcess(server) {
			continue
		}
		wrapped, err := s.relays.wrapped(s.proxy.options.Relay, server)
		if err != nil {
			return nil, err
		}
		servers[i] = wrapped
	}
	list, ok := appended(nil, servers...)
	if !ok {
		return params, nil
	}
	return strictjson.Put(params, serversMember, list)
}

// wrapped is an entry of mcpServers behind a relay. What it has besides stays.
func (r *relays) wrapped(relay process.Command, server json.RawMessage) (json.RawMessage, error) {
	var p stdioServer
	if err := json.Unmarshal(server, &p); err != nil {
		return nil, err
	}
	c := r.publisher.Wrap(relay, process.Command{Path: *p.Command, Args: p.Args})
	args, err := json.Marshal(c.Args)
	if err != nil {
		return nil, err
	}
	secret, err := json.Marshal(pair{mcprelay.SecretVariable, r.publisher.Secret()})
	if err != nil {
		return nil, err
	}
	env, _, err := strictjson.Take(server, "env")
	if err != nil {
		return nil, err
	}
	env, ok := appended(env, secret)
	if !ok {
		return server, nil // the agent says what is wrong with it
	}
	for _, member := range []struct {
		name  string
		value json.RawMessage
	}{{"command", strictjson.AppendText(nil, c.Path)}, {"args", args}, {"env", env}} {
		if server, err = strictjson.Put(server, member.name, member.value); err != nil {
			return nil, err
		}
	}
	return server, nil
}

const serversMember = "mcpServers"

// serversIn are the MCP servers in the params of a lifecycle request; none for null and nothing.
func serversIn(params backend.Raw) []byte {
	servers, _, err := strictjson.Take(params, serversMember)
	if err != nil || servers == nil || string(servers) == "null" {
		return []byte("[]")
	}
	return bytes.TrimSpace(servers)
}

// appended is a JSON array with values behind its own, whose bytes stay. Nothing and null are empty arrays; of
// anything else ok is false.
func appended(array backend.Raw, values ...backend.Raw) (longer backend.Raw, ok bool) {
	array = bytes.TrimSpace(array)
	if len(array) == 0 || string(array) == "null" {
		array = backend.Raw(`[]`)
	}
	end := len(array) - 1
	if array[0] != '[' || array[end] != ']' {
		return nil, false
	}
	longer = append(longer, array[:end]...)
	for i, value := range values {
		if i > 0 || len(bytes.TrimSpace(array[1:end])) > 0 {
			longer = append(longer, ',')
		}
		longer = append(longer, value...)
	}
	return append(longer, ']'), true
}

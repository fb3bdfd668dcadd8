package proxy

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/mcprelay"
	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

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
	if p.profile.Relay != profile.WithRelay || p.options.Relay.Path == "" || p.options.RelayDir == "" {
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

package proxy

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// relays tells the MCP servers of a session its roots. If the agent does not do that, each stdio
// server is started behind a relay that answers roots/list; HTTP servers cannot have one. Our own
// tool server always gets the roots from here. Bridges that replace each other share the
// relays, so that a server that keeps running is told about changes, and so may sessions with the
// same roots.
type relays struct {
	publisher *mcprelay.Publisher

	mu    sync.Mutex
	users []relayUser // the latest last; without users the relays are closed
	// told are the parts that the instructions of our tool server tell the model, if the server was
	// started since the child session was opened.
	told []briefing.Part
}

// relayUser is the user of relays, with the roots that it has published.
type relayUser struct {
	servers   *servers
	roots     mcproots.Snapshot
	published bool
}

// startRelays starts relays for m. If that is not possible, the servers are started as the client
// says.
func startRelays(m *servers) {
	p := m.proxy
	publisher, err := mcprelay.Listen(p.options.RelayDir, p.log)
	if err != nil {
		p.log.Warn("cannot tell the agent's MCP servers the session's roots, "+
			"or give it tools for them", "error", err)
		return
	}
	p.secrets.Add(publisher.Secret())
	r := &relays{publisher: publisher, users: []relayUser{{servers: m}}}
	m.relays = r
	publisher.SetAnswers(r.tell, r.rules)
	r.publish(m) // the child may start servers before it responds
}

// wrapsServers reports whether the agent's stdio servers are started behind relays.
func (p *proxy) wrapsServers() bool {
	o := p.options
	return o.Profile.Roots.Relay && o.Relay.Path != "" && o.RelayDir != ""
}

// secret returns the environment variable that lets a server ask for the session's roots.
func (r *relays) secret() sdk.EnvVariable {
	return sdk.EnvVariable{Name: mcprelay.SecretVariable, Value: r.publisher.Secret()}
}

// rules returns the rules for our tool server and behind relays: those of all users, because these
// do not know for whom they are called. known is false once the relays are being closed.
func (r *relays) rules() (_ mcprelay.Rules, known bool) {
	r.mu.Lock()
	users := slices.Clone(r.users)
	r.mu.Unlock()
	var all permission.Permissions
	var folders, readOnly []string
	for _, u := range users {
		for _, root := range u.roots.Existing().All() {
			folders = append(folders, root.Real.String())
			if root.Grant == workspace.ReadOnly {
				readOnly = append(readOnly, root.Real.String())
			}
		}
		ask, deny := u.servers.host.Restrictions()
		all = all.With(permission.Permissions{Ask: ask, Deny: deny})
	}
	return mcprelay.Rules{Ask: all.Ask, Deny: all.Deny, Folders: folders, ReadOnly: readOnly},
		len(users) > 0
}

// tell returns the text that the instructions of our tool server contain for the latest user's
// model, or "".
func (r *relays) tell() string {
	var m *servers
	r.mu.Lock()
	if len(r.users) > 0 {
		m = r.users[len(r.users)-1].servers
	}
	r.mu.Unlock()
	if m == nil || !m.proxy.options.Profile.Context.ByServer {
		return ""
	}
	likely := state{RootsMode: m.likelyMode()}
	told := m.parts(likely, m.tool(likely))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = told
	return briefing.SystemText(told)
}

// toldParts returns what tell has returned about each topic, nil for nothing. r may be nil.
func (r *relays) toldParts() []briefing.Part {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// forget drops the parts that were told, because the child may not start our tool server again. r
// may be nil.
func (r *relays) forget() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = nil
}

// join adds a user. It returns false if the relays are closed.
func (r *relays) join(m *servers) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.users) == 0 {
		return false
	}
	m.relays = r
	r.users = append(r.users, relayUser{servers: m})
	return true
}

// follow makes m a user in place of previous, and returns false if m must have its own relays:
// those of previous are used by other sessions, and m has other roots. r may be nil.
func (r *relays) follow(previous, m *servers) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	shared := slices.ContainsFunc(r.users,
		func(u relayUser) bool { return u.servers != previous })
	r.mu.Unlock()
	return (!shared || m.sameRoots(previous.setup)) && r.join(m)
}

// joinRelays makes m a user of the relays of another session, if it can. Some agents share MCP
// servers between the sessions of a working directory. There the relays of a session with the same
// roots and servers serve m too, so that both can be in one process.
func (p *proxy) joinRelays(m *servers) bool {
	if m.roots.Additional().Len() == 0 {
		return false
	}
	for _, u := range p.childUses() {
		other := u.bridge.servers
		if u.shares && other.relays != nil &&
			bytes.Equal(mcpServers(m.params), mcpServers(other.params)) &&
			m.sameRoots(other.setup) && other.relays.join(m) {
			return true
		}
	}
	return false
}

// publish tells the relays the roots of m, a user. r may be nil.
func (r *relays) publish(m *servers) {
	if r == nil {
		return
	}
	roots, err := mcproots.Take(m.host.Workspace())
	if err != nil {
		m.proxy.log.Warn("cannot tell the agent's MCP servers the new roots", "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.users {
		if r.users[i].servers == m {
			r.users[i].roots, r.users[i].published = roots, true
			r.publisher.Set(roots)
		}
	}
}

// leave removes a user, and publishes the roots of the latest one that is left. Without users the
// relays are closed. It may be called more than once. r may be nil.
func (r *relays) leave(m *servers) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	r.users = slices.DeleteFunc(r.users, func(u relayUser) bool { return u.servers == m })
	left := len(r.users)
	if left > 0 && r.users[left-1].published {
		r.publisher.Set(r.users[left-1].roots)
	}
	r.mu.Unlock()
	if left > 0 {
		return nil
	}
	return r.publisher.Close()
}

// wrap puts a relay in front of a stdio server, which was found in a folder if foundIn is not "".
// Its other members stay as they are. A server with a malformed environment is left to the agent,
// which will report the error. If r is nil, the agent answers the server's requests for roots.
func (r *relays) wrap(relay Command, server mcpServer, foundIn string) json.RawMessage {
	entry := server.raw
	if foundIn != "" {
		relay.Args = append(slices.Clone(relay.Args), "--found-in", foundIn)
		for _, v := range server.Env {
			relay.Args = append(relay.Args, "--env", v.Name)
		}
		entry = strictjson.Remove(entry, "_meta")
	}
	var publisher *mcprelay.Publisher
	if r != nil {
		publisher = r.publisher
		env, ok := strictjson.Append(strictjson.Find(entry, "env"), backend.Encode(r.secret()))
		if !ok {
			return entry
		}
		entry = strictjson.Set(entry, "env", env)
	}
	command := publisher.Wrap(relay,
		Command{Path: server.Command, Args: server.Args, Name: server.Name})
	entry = strictjson.Set(entry, "command", backend.Encode(command.Path))
	return strictjson.Set(entry, "args", backend.Encode(command.Args))
}

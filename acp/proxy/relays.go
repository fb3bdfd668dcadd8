package proxy

import (
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

// relays tell the MCP servers of a session its roots. If the agent does not do that, each stdio
// server is started behind a relay that answers roots/list; HTTP servers cannot have one. Our own
// tool server always gets the roots from here. Sessions that replace each other share the relays,
// so that a server that keeps running is told about changes, and so may sessions with the same
// roots. The zero value is off: it tells nothing, and has no users.
type relays struct {
	publisher *mcprelay.Publisher // nil if the relays are off

	mu    sync.Mutex
	users []*relayUser // the latest last; without users the relays are closed
	// told are the parts that the instructions of our tool server tell the model, if the server was
	// started since the child session was opened.
	told []briefing.Part
}

// relayUser is a session as a user of relays. Their mu guards what changes in it.
type relayUser struct {
	host      backend.Host
	tells     func() []briefing.Part // what our tool server tells the model; set by expect
	roots     mcproots.Snapshot
	published bool // the roots are
}

// newRelays returns relays with a user.
func newRelays(publisher *mcprelay.Publisher, u *relayUser) *relays {
	r := &relays{publisher: publisher, users: []*relayUser{u}}
	publisher.SetAnswers(r.tell, r.rules)
	return r
}

// listens reports whether the relays are not off.
func (r *relays) listens() bool { return r.publisher != nil }

// secret returns the environment variable that lets a server ask for the session's roots.
func (r *relays) secret() sdk.EnvVariable {
	return sdk.EnvVariable{Name: mcprelay.SecretVariable, Value: r.publisher.Secret()}
}

// all returns the users as they are now.
func (r *relays) all() (users []relayUser) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.users {
		users = append(users, *u)
	}
	return users
}

// rules returns the rules for our tool server and behind relays: those of all users, because these
// do not know for whom they are called. known is false once the relays are being closed.
func (r *relays) rules() (_ mcprelay.Rules, known bool) {
	users := r.all()
	var all permission.Permissions
	var folders, readOnly []string
	for _, u := range users {
		for _, root := range u.roots.Existing().All() {
			folders = append(folders, root.Real.String())
			if root.Grant == workspace.ReadOnly {
				readOnly = append(readOnly, root.Real.String())
			}
		}
		ask, deny := u.host.Restrictions()
		all = all.With(permission.Permissions{Ask: ask, Deny: deny})
	}
	return mcprelay.Rules{Ask: all.Ask, Deny: all.Deny, Folders: folders, ReadOnly: readOnly},
		len(users) > 0
}

// tell returns the text that the instructions of our tool server contain for the latest user's
// model, or "".
func (r *relays) tell() string {
	users := r.all()
	if len(users) == 0 {
		return ""
	}
	told := users[len(users)-1].tells()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = told
	return briefing.SystemText(told)
}

// toldParts returns what tell has returned about each topic, nil for nothing.
func (r *relays) toldParts() []briefing.Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// forget drops the parts that were told, because the child may not start our tool server again.
func (r *relays) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = nil
}

// expect sets what our tool server is to tell the model of a user.
func (r *relays) expect(u *relayUser, tells func() []briefing.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u.tells = tells
}

// join adds a user. It returns false if the relays are closed or off.
func (r *relays) join(u *relayUser) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.users) == 0 {
		return false
	}
	r.users = append(r.users, u)
	return true
}

// serveOthers reports whether there are other users than u.
func (r *relays) serveOthers(u *relayUser) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.users, func(other *relayUser) bool { return other != u })
}

// publish tells the servers the roots of a user.
func (r *relays) publish(u *relayUser, roots mcproots.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.users, u) {
		u.roots, u.published = roots, true
		r.publisher.Set(roots)
	}
}

// leave removes a user, and publishes the roots of the latest one that is left. Without users the
// relays are closed. It may be called more than once.
func (r *relays) leave(u *relayUser) error {
	r.mu.Lock()
	r.users = slices.DeleteFunc(r.users, func(other *relayUser) bool { return other == u })
	left := len(r.users)
	if left > 0 && r.users[left-1].published {
		r.publisher.Set(r.users[left-1].roots)
	}
	r.mu.Unlock()
	if left > 0 || !r.listens() {
		return nil
	}
	return r.publisher.Close()
}

// wrap puts a relay in front of a stdio server, which was found in a folder if foundIn is not "".
// Its other members stay as they are. A server with a malformed environment is left to the agent,
// which will report the error. If r is off, the agent answers the server's requests for roots.
func (r *relays) wrap(relay Command, server mcpServer, foundIn string) json.RawMessage {
	entry := server.raw
	if foundIn != "" {
		relay.Args = append(slices.Clone(relay.Args), "--found-in", foundIn)
		for _, v := range server.Env {
			relay.Args = append(relay.Args, "--env", v.Name)
		}
		entry = strictjson.Remove(entry, "_meta")
	}
	if r.listens() {
		env, ok := strictjson.Append(strictjson.Find(entry, "env"), backend.Encode(r.secret()))
		if !ok {
			return entry
		}
		entry = strictjson.Set(entry, "env", env)
	}
	command := r.publisher.Wrap(relay,
		Command{Path: server.Command, Args: server.Args, Name: server.Name})
	entry = strictjson.Set(entry, "command", backend.Encode(command.Path))
	return strictjson.Set(entry, "args", backend.Encode(command.Args))
}

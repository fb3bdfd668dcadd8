package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// RemoteRights are the parts of a backend that several users may share. A remote [Peer] may use those
// that are set. Without any of them it reaches only the sessions that its principal made through
// the adapter, with the methods that the adapter knows.
type RemoteRights struct {
	// Sessions are the sessions that the backend keeps itself, with their ids; see
	// [backend.Foreign].
	Sessions bool
	// Account is the backend's account: authenticate, logout, and methods that begin with auth/ or
	// providers/.
	Account bool
	// Extensions are the methods and capabilities that the adapter does not know, and _meta and
	// unknown members in the params of requests. What the backend does with those may have nothing
	// to do with sessions, or lead out of their folders.
	Extensions bool
}

// allows reports whether a message with this method, which the adapter does not serve, may go from
// the client to the backend. ACP defines the methods that have a shape.
func (g RemoteRights) allows(method string) bool {
	if isAccountMethod(method) {
		return g.Account
	}
	return g.Extensions || methodOf(method).shape != nil
}

// allowsBack reports whether a message with this method that belongs to no session may go from the
// backend to the client.
func (g RemoteRights) allowsBack(method string) bool {
	if isAccountMethod(method) {
		return g.Account
	}
	return g.Extensions || strings.HasPrefix(method, protocol.ElicitationPrefix)
}

func isAccountMethod(method string) bool {
	return method == protocol.Authenticate || method == protocol.Logout ||
		strings.HasPrefix(method, protocol.AuthPrefix) ||
		strings.HasPrefix(method, protocol.ProvidersPrefix)
}

// errNotGranted is the error for a method that a client with a role may not use.
func errNotGranted(role Role, method string) error {
	who := "the operator of this server does not let its users"
	if !role.May(method) {
		who = fmt.Sprintf("the role %q does not let this device", role)
	}
	return stateError(jsonrpc.CodeMethodNotFound, fmt.Sprintf("%s call %s", who,
		text.Quote(text.Truncate(method, 64))), reasonData{Reason: "not_allowed"})
}

// refuse returns the work for a message that the client may not send.
func (c *connection) refuse(r *jsonrpc.Request) jsonrpc.Work {
	method, id := r.Method, sessionOf(r)
	return func() (json.RawMessage, error) {
		c.adapter.log.Info("refused a message to the agent", "method", text.Truncate(method, 64))
		c.observe(RefusedEvent{method, id})
		return nil, errNotGranted(c.peer.Role, method)
	}
}

// prune removes what a client without Extensions may not send from the params of a message that the
// adapter knows: other members than it knows, and _meta in all objects that it knows. Agents take
// settings from these, such as another session to continue or a program to start. The params of
// initialize describe the client and those of authenticate its account; these stay.
func (g RemoteRights) prune(r *jsonrpc.Request) {
	shape := methodOf(r.Method).shape
	if g.Extensions || shape == nil || r.Method == protocol.Initialize ||
		isAccountMethod(r.Method) {
		return
	}
	r.Params = strictjson.Prune(r.Params, shape, "_meta")
}

// offered returns the members of the backend's answer to initialize that the client is told of:
// nothing that it may not use.
func (g RemoteRights) offered(result backend.Raw) backend.Raw {
	for name := range members(result) {
		offered := g.Extensions
		switch name {
		case "protocolVersion", "agentInfo", "agentCapabilities":
			offered = true
		case "authMethods":
			offered = g.Account
		}
		if !offered {
			result = strictjson.Remove(result, name)
		}
	}
	return result
}

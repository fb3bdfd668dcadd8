package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Grants are the parts of a backend that several users may share. A remote [Peer] may use those
// that are set. Without any of them it reaches only the sessions that its principal made through
// the adapter, with the methods that the adapter knows.
type Grants struct {
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

// grantsOf returns what the client may use.
func grantsOf(o Options, remote bool) Grants {
	if !remote {
		return Grants{Sessions: true, Account: true, Extensions: true}
	}
	return o.RemoteGrants
}

// allows reports whether a message with this method, which the adapter does not serve, may go from
// the client to the backend. The adapter knows the methods that have a shape.
func (g Grants) allows(method string) bool {
	if isAccountMethod(method) {
		return g.Account
	}
	return g.Extensions || passedShapes[method] != nil
}

// allowsBack reports whether a message with this method that belongs to no session may go from the
// backend to the client.
func (g Grants) allowsBack(method string) bool {
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

// errNotGranted is the error for a method that the client may not use.
func errNotGranted(method string) error {
	return stateError(jsonrpc.CodeMethodNotFound,
		fmt.Sprintf("the operator of this server does not let its users call %s",
			text.Quote(text.Truncate(method, 64))), reasonData{Reason: "not_allowed"})
}

// refuse returns the work for a message that the client may not send to the backend.
func (a *agent) refuse(r *jsonrpc.Request, id sessionstore.ID) jsonrpc.Work {
	method := r.Method
	return func() (json.RawMessage, error) {
		a.log.Info("refused a message to the agent", "method", text.Truncate(method, 64))
		if a.options.Observe != nil {
			a.options.Observe(RefusedEvent{method, id})
		}
		return nil, errNotGranted(method)
	}
}

// withoutUnknown removes _meta and unknown members from the params of a request of a client without
// Extensions. Agents take settings from them, such as another session to continue, a folder or a
// program to start. Those of initialize describe the client. decodeSession removes those of a
// session.
func (g Grants) withoutUnknown(r *jsonrpc.Request) {
	if g.Extensions || r.Method == protocol.Initialize || isAccountMethod(r.Method) {
		return
	}
	if meta, rest, err := strictjson.Take(r.Params, "_meta"); err == nil && meta != nil {
		r.Params = rest
	}
	shape := passedShapes[r.Method]
	if r.Method == protocol.SessionPrompt {
		shape = promptShape
	}
	if shape != nil {
		r.Params = keepMembers(r.Params, knows(shape))
	}
}

// offered returns the members of the backend's answer to initialize that the client is told of:
// nothing that it may not use.
func (g Grants) offered(result backend.Raw) backend.Raw { return keepMembers(result, g.offers) }

// keepMembers returns an object with some of its members. Anything else stays as it is.
func keepMembers(raw json.RawMessage, keep func(name string) bool) json.RawMessage {
	for name := range members(raw) {
		if !keep(name) {
			_, raw, _ = strictjson.Take(raw, name) // it is an object
		}
	}
	return raw
}

// offers reports whether the client is told of this member of the backend's answer.
func (g Grants) offers(name string) bool {
	switch name {
	case "protocolVersion", "agentInfo", "agentCapabilities":
		return true
	case "authMethods":
		return g.Account
	}
	return g.Extensions
}

// onRecord is a backend's own sessions as a client without the grant for them sees them: only those
// that are in the store exist. Its list only updates these; see [sessionstore.Imported].
type onRecord struct{ backend.Foreign }

// State implements [backend.Foreign].
func (onRecord) State(string) []byte { return nil }

package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// noSignIn is the id of the method that needs no sign-in. It is offered for a backend without
// methods, because clients and the ACP registry expect at least one.
const noSignIn = "none"

// authMethods returns the sign-in methods to offer for a backend that has none. The first needs no
// sign-in. The second configures the program in a terminal; it is left out if the program cannot do
// that, or the client does not open terminals for it.
func (a *adapter) authMethods() json.RawMessage {
	type method struct {
		ID          string   `json:"id"`
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Type        string   `json:"type,omitempty"` // default: agent
		Args        []string `json:"args,omitempty"`
	}
	methods := []method{{ID: noSignIn, Name: "No sign-in",
		Description: "acp-agent needs no account."}}
	if len(a.options.SetupArgs) > 0 && a.connection.clientCapabilities().terminalSignIn {
		methods = append(methods, method{ID: "setup", Name: "Set up acp-agent",
			Description: "Choose the agent or model that answers, and folders that belong " +
				"together.",
			Type: "terminal", Args: a.options.SetupArgs})
	}
	return backend.Encode(methods)
}

// callBackend lets the backend serve a request that names no active session. An authenticate with
// the method noSignIn succeeds without it. If the backend knows neither authenticate nor logout,
// there is nothing to sign in to.
func (a *adapter) callBackend(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	done := func() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }
	if r.Method == protocol.Authenticate && a.isKnown() && namesNoSignIn(r.Params) &&
		!namesSignIn(a.info().Initialize) {
		return done
	}
	if work := a.backend.Call(ctx, r.Method, r.Params); work != nil {
		return work
	}
	switch r.Method {
	case protocol.Authenticate:
		return jsonrpc.Fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"unknown methodId: acp-agent needs no sign-in and offers only %q", noSignIn))
	case protocol.Logout:
		return done
	case protocol.AuthStatus:
		return func() (json.RawMessage, error) {
			return json.RawMessage(`{"state":"not_required"}`), nil
		}
	}
	return nil
}

// namesNoSignIn reports whether the params of authenticate name the method that needs no sign-in.
func namesNoSignIn(params json.RawMessage) bool {
	return strictjson.FindText(params, "methodId") == noSignIn
}

package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
)

// noSignIn is the only method of authMethods for a backend that has none of its own. Clients and
// the ACP registry expect at least one.
const noSignIn = "none"

// authMethods are those of a backend that has none.
var authMethods = json.RawMessage(`[{"id":"` + noSignIn + `","name":"No sign-in",` +
	`"description":"acp-agent needs no account."}]`)

// callBackend lets the backend serve a request that names no active session. If it knows neither
// authenticate nor logout, there is nothing to sign in to, and they succeed.
func (a *agent) callBackend(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if work := a.backend.Call(ctx, r.Method, r.Params); work != nil {
		return jsonrpc.Work(work)
	}
	switch r.Method {
	case protocol.Authenticate:
		return func() (json.RawMessage, error) { return authenticate(r.Params) }
	case protocol.Logout:
		return func() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }
	}
	return nil
}

// authenticate succeeds for the method that needs no sign-in.
func authenticate(raw json.RawMessage) (json.RawMessage, error) {
	var params struct {
		MethodID string `json:"methodId"`
	}
	if err := json.Unmarshal(raw, &params); err != nil || params.MethodID != noSignIn {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"unknown methodId: acp-agent needs no sign-in and offers only %q", noSignIn)
	}
	return json.RawMessage(`{}`), nil
}

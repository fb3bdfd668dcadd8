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

// callBackend lets the backend serve a request that names no active session. authenticate by the
// method that was added to its initialize succeeds. If the backend knows neither authenticate nor
// logout, there is nothing to sign in to.
func (a *agent) callBackend(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	done := func() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }
	if r.Method == protocol.Authenticate && a.init.needsNoSignIn() && namesNoSignIn(r.Params) {
		return done
	}
	if work := a.backend.Call(ctx, r.Method, r.Params); work != nil {
		return jsonrpc.Work(work)
	}
	switch r.Method {
	case protocol.Authenticate:
		return reject(jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"unknown methodId: acp-agent needs no sign-in and offers only %q", noSignIn))
	case protocol.Logout:
		return done
	}
	return nil
}

// namesNoSignIn reports whether the params of authenticate name the method that needs no sign-in.
func namesNoSignIn(params json.RawMessage) bool {
	var p struct {
		MethodID string `json:"methodId"`
	}
	return json.Unmarshal(params, &p) == nil && p.MethodID == noSignIn
}

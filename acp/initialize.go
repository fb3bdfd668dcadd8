package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// protocolVersion is the only version of ACP that the adapter speaks.
const protocolVersion = 1

// initialization has the facts from initialize. It does not change; the next step replaces it.
type initialization struct {
	client clientCapabilities
	ended  chan struct{} // closed when the initialize is complete or has failed

	// Zero until it is complete, when Kind is not empty:
	backend.Info
	transports mcpTransports // that were advertised
}

// info returns what initialize has made known, the zero value before.
func (a *adapter) info() *initialization {
	if known := a.known.Load(); known != nil {
		return known
	}
	return &initialization{}
}

// isKnown reports whether initialize is complete.
func (a *adapter) isKnown() bool { return a.info().Kind != "" }

// identity returns the agent that the sessions belong to.
func (a *adapter) identity() sessionstore.Agent {
	info := a.info()
	return sessionstore.Agent{Kind: info.Kind, Profile: info.Profile}
}

// namesSignIn reports whether the result of initialize has a list of methods to sign in, perhaps an
// empty one.
func namesSignIn(result json.RawMessage) bool {
	methods := strictjson.Find(result, "authMethods")
	return methods != nil && string(methods) != "null"
}

// initialized waits for an initialize that was read before. It fails if there is none or it failed.
func (c *connection) initialized(ctx context.Context) error {
	known := c.adapter.info()
	if known.Kind != "" {
		return nil
	}
	if known.ended != nil {
		if err := tasks.Await(ctx, known.ended); err != nil {
			return err
		}
	}
	if !c.adapter.isKnown() {
		return errNotInitialized("the request")
	}
	return nil
}

// errNoKind tells the author of a backend to set Kind. Without it any agent could open the
// backend's sessions.
var errNoKind = errors.New(
	"the backend has no Info.Kind: name the agent that its sessions belong to")

// acceptInitialize serves initialize. Only one may succeed, and another may follow only after a
// failure.
func (c *connection) acceptInitialize(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if err := checkInitialize(r.Params); err != nil {
		return jsonrpc.Fail(err)
	}
	a := c.adapter
	begun := &initialization{client: readClientCapabilities(r.Params), ended: make(chan struct{})}
	if !a.known.CompareAndSwap(nil, begun) {
		return jsonrpc.Fail(stateError(jsonrpc.CodeInvalidRequest,
			"initialize was already sent: send it once", reasonData{Reason: "initialized"}))
	}
	return c.work(ctx, func(ctx context.Context) (result json.RawMessage, err error) {
		var complete *initialization
		defer func() { // also after a panic
			a.known.Store(complete)
			close(begun.ended)
		}()
		info, err := a.backend.Initialize(ctx, r.Params, sessionless{a})
		if err != nil {
			return nil, err
		}
		if info.Kind == "" {
			return nil, errNoKind
		}
		info.Initialize = a.grants.offered(info.Initialize)
		result, transports, err := a.initializeResult(info)
		if err == nil {
			complete = &initialization{begun.client, begun.ended, info, transports}
		}
		return result, err
	})
}

var initializeShape = shape(shapes{
	"clientInfo":         keys("name", "title", "version", "_meta"),
	"clientCapabilities": capabilitiesShape(),
}, "protocolVersion", "_meta")

// checkInitialize rejects params without a protocol version.
func checkInitialize(raw json.RawMessage) error {
	params, err := parseParams(raw, initializeShape)
	if err != nil {
		return err
	}
	version := params.Field("protocolVersion")
	var (
		v      strictjson.Violations
		number float64
	)
	switch {
	case !version.Present():
		v.Add(version.Refuse(strictjson.Required))
	case version.IsNull():
		v.Add(version.Refuse(strictjson.Null))
	case json.Unmarshal(version.Raw(), &number) != nil:
		v.Add(version.Refuse(strictjson.Type).Expecting("a number"))
	}
	return v.Err()
}

// initializeResult returns the response: the backend's part and the adapter's additions.
func (a *adapter) initializeResult(info backend.Info) (json.RawMessage, mcpTransports, error) {
	result := info.Initialize
	if _, err := strictjson.ParseObject(result); err != nil && len(result) > 0 {
		return nil, mcpTransports{}, jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent's response to initialize is not an object")
	}
	capabilities, transports := agentCapabilities(
		strictjson.Find(result, "agentCapabilities"), info, a.grants)
	result = strictjson.Set(result, "agentCapabilities", capabilities)
	if !strictjson.IsObject(strictjson.Find(result, "agentInfo")) {
		result = strictjson.Set(result, "agentInfo",
			backend.Encode(sdk.Implementation{Name: agentName, Version: a.options.Version}))
	}
	if !namesSignIn(result) {
		result = strictjson.Set(result, "authMethods", a.authMethods())
	}
	return strictjson.Set(result, "protocolVersion",
		json.RawMessage(strconv.Itoa(protocolVersion))), transports, nil
}

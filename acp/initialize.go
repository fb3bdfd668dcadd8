package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// protocolVersion is the only version of ACP that the adapter speaks.
const protocolVersion = 1

// initialization tracks whether the connection is initialized, and with what.
type initialization struct {
	mu      sync.Mutex
	pending chan struct{} // not nil after initialize was read; closed when it is complete
	ok      bool          // it has succeeded
	info    backend.Info
	mcp     mcpTransports // that were advertised
}

// begin notes that an initialize was read. Only one may succeed, and another may follow only after
// a failure.
func (i *initialization) begin() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pending != nil {
		return stateError(jsonrpc.CodeInvalidRequest, "initialize was already sent: send it once",
			reasonData{Reason: "initialized"})
	}
	i.pending = make(chan struct{})
	return nil
}

// end notes the outcome of the initialize that began.
func (i *initialization) end(info backend.Info, mcp mcpTransports, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.pending)
	i.info, i.mcp, i.ok = info, mcp, err == nil
	if err != nil {
		i.pending = nil
	}
}

// begun reports whether an initialize was read.
func (i *initialization) begun() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pending != nil
}

// done reports whether the connection is initialized.
func (i *initialization) done() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ok
}

// backend returns the backend's description of itself.
func (i *initialization) backend() backend.Info {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.info
}

// owner returns the agent that the connection's sessions belong to.
func (i *initialization) owner() sessionstore.Agent {
	info := i.backend()
	return sessionstore.Agent{Kind: info.Kind, Profile: info.Profile}
}

// needsNoSignIn reports whether the backend named no methods to sign in.
func (i *initialization) needsNoSignIn() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ok && !namesSignIn(members(i.info.Initialize))
}

// namesSignIn reports whether the result of initialize has a list of methods to sign in, perhaps an
// empty one.
func namesSignIn(result map[string]json.RawMessage) bool {
	methods, given := result["authMethods"]
	return given && string(methods) != "null"
}

// mcpOwner says who connects MCP servers.
func (i *initialization) mcpOwner() backend.MCPOwner { return i.backend().MCP }

// sandbox says how the backend's processes are restricted, or "".
func (i *initialization) sandbox() string { return i.backend().Sandbox }

// overlappingTurns reports whether the backend handles overlapping turns.
func (i *initialization) overlappingTurns() bool { return i.backend().OverlappingTurns }

// transports returns the MCP transports that were advertised.
func (i *initialization) transports() mcpTransports {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mcp
}

// initialized waits for an initialize that was read before. It fails if there is none or it failed.
func (a *agent) initialized(ctx context.Context) error {
	a.init.mu.Lock()
	pending, ok := a.init.pending, a.init.ok
	a.init.mu.Unlock()
	switch {
	case ok:
		return nil
	case pending == nil:
		return errNotInitialized("the request")
	}
	select {
	case <-pending:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !a.init.done() {
		return errNotInitialized("the request")
	}
	return nil
}

// errNoKind tells the author of a backend to set Kind. Without it any agent could open the
// backend's sessions.
var errNoKind = errors.New(
	"the backend has no Info.Kind: name the agent that its sessions belong to")

// acceptInitialize serves initialize.
func (a *agent) acceptInitialize(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if err := checkInitialize(r.Params); err != nil {
		return jsonrpc.Fail(err)
	}
	if err := a.init.begin(); err != nil {
		return jsonrpc.Fail(err)
	}
	return func() (result json.RawMessage, err error) {
		var (
			info backend.Info
			mcp  mcpTransports
		)
		err = tasks.ErrPanicked // unless the backend returns
		defer func() { a.init.end(info, mcp, err) }()
		ctx, cancel := a.requestContext(ctx)
		defer cancel()
		a.capabilities.Store(readClientCapabilities(r.Params))
		if info, err = a.backend.Initialize(ctx, r.Params, sessionless{agent: a}); err != nil {
			return nil, err
		}
		if info.Kind == "" {
			return nil, errNoKind
		}
		info.Initialize = a.grants.offered(info.Initialize)
		result, mcp, err = a.initializeResult(info)
		return result, err
	}
}

// checkInitialize rejects params without a protocol version.
func checkInitialize(raw json.RawMessage) error {
	params := parseParams(raw, initializeShape)
	if params.err != nil {
		return params.err
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
func (a *agent) initializeResult(info backend.Info) (json.RawMessage, mcpTransports, error) {
	result := info.Initialize
	if len(result) == 0 {
		result = json.RawMessage(`{}`)
	}
	if _, err := strictjson.ParseObject(result); err != nil {
		return nil, mcpTransports{}, jsonrpc.Errorf(jsonrpc.CodeInternal,
			"the agent's response to initialize is not an object")
	}
	top := members(result)
	capabilities, transports := agentCapabilities(top["agentCapabilities"], info, a.grants)
	result = strictjson.Set(result, "agentCapabilities", capabilities)
	if !strictjson.IsObject(top["agentInfo"]) {
		result = strictjson.Set(result, "agentInfo",
			backend.Encode(sdk.Implementation{Name: agentName, Version: a.options.Version}))
	}
	if !namesSignIn(top) {
		result = strictjson.Set(result, "authMethods", a.authMethods())
	}
	return strictjson.Set(result, "protocolVersion",
		json.RawMessage(strconv.Itoa(protocolVersion))), transports, nil
}

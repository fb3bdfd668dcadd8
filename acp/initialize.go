package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// protocolVersion is the only version of ACP that the adapter speaks.
const protocolVersion = 1

// initialized holds the facts that a successful initialize made known. It does not change.
type initialized struct {
	backend.Info
	transports mcpTransports // that were advertised
}

// info returns what initialize made known, the zero value before it has succeeded.
func (a *agent) info() *initialized {
	if known := a.known.Load(); known != nil {
		return known
	}
	return &initialized{}
}

// identity returns the agent that the sessions belong to.
func (a *agent) identity() sessionstore.Agent {
	info := a.info()
	return sessionstore.Agent{Kind: info.Kind, Profile: info.Profile}
}

// needsNoSignIn reports whether the backend named no methods to sign in.
func (a *agent) needsNoSignIn() bool {
	known := a.known.Load()
	return known != nil && !namesSignIn(members(known.Initialize))
}

// namesSignIn reports whether the result of initialize has a list of methods to sign in, perhaps an
// empty one.
func namesSignIn(result map[string]json.RawMessage) bool {
	methods, given := result["authMethods"]
	return given && string(methods) != "null"
}

// initializing holds back what comes before the response to initialize.
type initializing struct {
	mu      sync.Mutex
	pending chan struct{} // not nil after initialize was read; closed when it is complete
}

// begin notes that an initialize was read. Only one may succeed, and another may follow only after
// a failure.
func (i *initializing) begin() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pending != nil {
		return stateError(jsonrpc.CodeInvalidRequest, "initialize was already sent: send it once",
			reasonData{Reason: "initialized"})
	}
	i.pending = make(chan struct{})
	return nil
}

// end ends the initialize that began.
func (i *initializing) end(ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.pending)
	if !ok {
		i.pending = nil
	}
}

// current returns a channel that is closed when the initialize that was read is complete, nil if
// none was.
func (i *initializing) current() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pending
}

// begun reports whether an initialize was read.
func (i *initializing) begun() bool { return i.current() != nil }

// initialized waits for an initialize that was read before. It fails if there is none or it failed.
func (c *connection) initialized(ctx context.Context) error {
	if c.agent.known.Load() != nil {
		return nil
	}
	pending := c.initializing.current()
	if pending == nil {
		return errNotInitialized("the request")
	}
	select {
	case <-pending:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.agent.known.Load() == nil {
		return errNotInitialized("the request")
	}
	return nil
}

// errNoKind tells the author of a backend to set Kind. Without it any agent could open the
// backend's sessions.
var errNoKind = errors.New(
	"the backend has no Info.Kind: name the agent that its sessions belong to")

// acceptInitialize serves initialize.
func (c *connection) acceptInitialize(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if err := checkInitialize(r.Params); err != nil {
		return jsonrpc.Fail(err)
	}
	if err := c.initializing.begin(); err != nil {
		return jsonrpc.Fail(err)
	}
	return func() (result json.RawMessage, err error) {
		ok := false
		defer func() { c.initializing.end(ok) }() // also after a panic
		ctx, cancel := c.agent.requestContext(ctx)
		defer cancel()
		c.capabilities.Store(readClientCapabilities(r.Params))
		var known *initialized
		if result, known, err = c.agent.initialize(ctx, r.Params); err != nil {
			return nil, err
		}
		c.agent.known.Store(known)
		ok = true
		return result, nil
	}
}

// initialize initializes the backend. It returns the response, and what is known now.
func (a *agent) initialize(
	ctx context.Context, params json.RawMessage,
) (json.RawMessage, *initialized, error) {
	info, err := a.backend.Initialize(ctx, params, sessionless{a})
	if err != nil {
		return nil, nil, err
	}
	if info.Kind == "" {
		return nil, nil, errNoKind
	}
	info.Initialize = a.grants.offered(info.Initialize)
	result, transports, err := a.initializeResult(info)
	return result, &initialized{info, transports}, err
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

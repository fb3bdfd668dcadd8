package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// protocolVersion is the newest, and only, version that is spoken.
const protocolVersion = 1

// initialization is how far the connection's initialize has come.
type initialization struct {
	mu      sync.Mutex
	pending chan struct{} // not nil from the first initialize on; closed at its end
	info    backend.Info
	ok      bool
	mcp     mcpTransports
}

// begin starts an initialize; a second one is an error (W10). One that failed may be followed by another.
func (i *initialization) begin() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pending != nil {
		return reasoned(jsonrpc.CodeInvalidRequest, "initialize was sent before: it is sent once", reasonData{Reason: "initialized"})
	}
	i.pending = make(chan struct{})
	return nil
}

// end ends the initialize that began.
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

// owner is whom the connection's sessions belong to.
func (i *initialization) owner() sessionstore.Agent {
	i.mu.Lock()
	defer i.mu.Unlock()
	return sessionstore.Agent{Kind: i.info.Kind, Profile: i.info.Profile}
}

// connects says who connects MCP servers.
func (i *initialization) connects() backend.MCPOwner {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.info.MCP
}

// transports are the MCP transports that were advertised.
func (i *initialization) transports() mcpTransports {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mcp
}

// initialized waits for an initialize that was read before.
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

// errNoKind is for who embeds the adapter: sessions of nobody could be opened by any agent.
var errNoKind = errors.New("the runtime has no Info.Kind: name the agent that its sessions belong to")

// acceptInitialize is the first half of initialize.
func (a *agent) acceptInitialize(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if err := checkInitialize(r.Params); err != nil {
		return failed(err)
	}
	if err := a.init.begin(); err != nil {
		return failed(err)
	}
	return func() (result json.RawMessage, err error) {
		var (
			info backend.Info
			mcp  mcpTransports
		)
		err = errors.New("initialize did not finish") // unless it does: a panic is no success
		defer func() { a.init.end(info, mcp, err) }()
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		capabilities := readClientCapabilities(r.Params)
		a.gate.capabilities.Store(&capabilities)
		if info, err = a.runtime.Initialize(ctx, r.Params, anonymous{agent: a}); err != nil {
			return nil, err
		}
		if info.Kind == "" {
			return nil, errNoKind
		}
		result, mcp, err = a.initializeResult(info)
		return result, err
	}
}

// checkInitialize refuses params without a protocol version.
func checkInitialize(params json.RawMessage) error {
	object, wrong := readParams(params, initializeShape)
	if wrong != nil {
		return strictjson.Refuse(wrong...)
	}
	version := object.Field("protocolVersion")
	var number float64
	switch {
	case !version.Present():
		wrong = append(wrong, version.Refuse(strictjson.Required))
	case version.IsNull():
		wrong = append(wrong, version.Refuse(strictjson.Null))
	case json.Unmarshal(version.Raw(), &number) != nil:
		wrong = append(wrong, version.Refuse(strictjson.Type).Expecting("a number"))
	}
	return strictjson.Refuse(wrong...)
}

// readClientCapabilities reads what gates client methods; what cannot be read is not advertised.
func readClientCapabilities(params json.RawMessage) clientCapabilities {
	var c clientCapabilities
	top := members(params)
	capabilities := members(top["clientCapabilities"])
	files := members(capabilities["fs"])
	c.readTextFile = isTrue(files["readTextFile"])
	c.writeTextFile = isTrue(files["writeTextFile"])
	c.terminal = isTrue(capabilities["terminal"])
	c.elicitation = isObject(capabilities["elicitation"])
	return c
}

// initializeResult is the runtime's object with what the adapter supplies (A1, W10).
func (a *agent) initializeResult(info backend.Info) (json.RawMessage, mcpTransports, error) {
	result := info.Initialize
	if len(result) == 0 {
		result = json.RawMessage(`{}`)
	}
	if _, err := strictjson.ParseObject(result); err != nil {
		return nil, mcpTransports{}, jsonrpc.Errorf(jsonrpc.CodeInternal, "the agent answered initialize with something that is not an object")
	}
	top := members(result)
	capabilities, transports := agentCapabilities(top["agentCapabilities"], info)
	result = put(result, "agentCapabilities", capabilities)
	if !isObject(top["agentInfo"]) {
		result = put(result, "agentInfo", json.RawMessage(`{"name":`+string(quote(agentName))+`,"version":`+string(quote(a.options.Version))+`}`))
	}
	if _, given := top["authMethods"]; !given {
		result = put(result, "authMethods", json.RawMessage(`[]`))
	}
	return put(result, "protocolVersion", json.RawMessage(strconv.Itoa(protocolVersion))), transports, nil
}

// sessionCapabilities are those that the adapter implements for every backend.
var sessionCapabilities = []string{"additionalDirectories", "close", "delete", "fork", "list", "resume"}

// agentCapabilities is the runtime's capabilities with the adapter's.
func agentCapabilities(given json.RawMessage, info backend.Info) (json.RawMessage, mcpTransports) {
	if !isObject(given) {
		given = json.RawMessage(`{}`)
	}
	own := members(given)
	sessions := own["sessionCapabilities"]
	for _, name := range sessionCapabilities {
		sessions = put(sessions, name, json.RawMessage(`{}`))
	}
	mcp := own["mcpCapabilities"]
	switch {
	case info.MCP == backend.AdapterConnects:
		mcp = json.RawMessage(`{"http":true,"sse":true}`)
	case !isObject(mcp):
		mcp = json.RawMessage(`{"http":false,"sse":false}`)
	}
	given = put(given, "mcpCapabilities", mcp)
	given = put(given, "sessionCapabilities", sessions)
	given = put(given, "loadSession", json.RawMessage(`true`))
	kinds := members(mcp)
	return given, mcpTransports{http: isTrue(kinds["http"]), sse: isTrue(kinds["sse"])}
}

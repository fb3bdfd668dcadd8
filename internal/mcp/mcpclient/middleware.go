package mcpclient

//lint:file-ignore SA1019 the SDK marks roots and sampling as deprecated (SEP-2577); they are supported for existing servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// retryDelay is the delay before a call is repeated for a server that asked for nothing, multiplied
// by the number of calls.
const retryDelay = 50 * time.Millisecond

// receive handles requests of the server. It rejects methods that were not offered: the SDK rejects
// some of them with another code, and panics at some malformed notifications.
func (c *connection) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				c.logPanic(v, method)
				err = rpcError(jsonrpc.CodeInternalError, "the client failed to handle %s", method)
			}
		}()
		switch {
		case !c.offers(method):
			return nil, rpcError(jsonrpc.CodeMethodNotFound, "this client does not offer %s", method)
		case method == mcproots.ListMethod:
			return c.listRoots()
		default:
			return next(ctx, method, req)
		}
	}
}

// logPanic notes a panic, which is probably the SDK's at a malformed message. A server can cause any
// number of them.
func (c *connection) logPanic(value any, method string) {
	c.server.log.Debug("panic", "method", method, "panic", fmt.Sprint(value),
		"stack", string(debug.Stack()))
}

// offers reports whether this client handles a method.
func (c *connection) offers(method string) bool {
	switch method {
	case "ping", "notifications/cancelled", "notifications/progress", "notifications/message",
		"notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated",
		"notifications/subscriptions/acknowledged":
		return true
	case mcproots.ListMethod:
		return c.capabilities.RootsV2 != nil
	case "sampling/createMessage":
		return c.capabilities.Sampling != nil
	case "elicitation/create", "notifications/elicitation/complete":
		return c.capabilities.Elicitation != nil
	}
	return false
}

// listRoots returns the roots for the server, and records that it was sent them. They are in their
// order, in both eras of the protocol: the SDK would sort them.
func (c *connection) listRoots() (*mcp.ListRootsResult, error) {
	s := c.server
	roots := s.set.currentFolders().roots.Existing()
	c.readiness.rootsSent()
	c.sent.Store(&roots)
	c.endIfOutdated() // the folders may have changed meanwhile
	s.mu.Lock()
	s.wakeLocked() // it may be ready earlier now
	s.mu.Unlock()
	if c.modern() && !c.isOwn() {
		s.warn(deprecatedRoots)
	}
	return roots.List(), nil
}

// send declares roots to a modern server without listChanged, as that revision requires, limits how
// long a server may take to answer server/discover, and gives it the input that it asks for. It
// turns a panic into an error, because some malformed responses make the SDK panic.
func (c *connection) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				c.logPanic(v, method)
				err = errors.New("the server's response is malformed")
			}
		}()
		if params := req.GetParams(); params != nil {
			meta, offered := params.GetMeta(), c.capabilities
			if offered.RootsV2 != nil && meta[mcp.MetaKeyClientCapabilities] != nil {
				meta[mcp.MetaKeyClientCapabilities] = modernCapabilities{
					Elicitation: offered.Elicitation, Sampling: offered.Sampling}
			}
		}
		if method == "server/discover" {
			probe, cancel := context.WithTimeout(ctx, c.probeTimeout())
			defer cancel()
			ctx = probe
		}
		if mcproots.MayAsk(method) {
			return c.complete(ctx, method, req, next)
		}
		return next(ctx, method, req)
	}
}

// modernCapabilities are the capabilities of a client that offers roots, and perhaps more.
type modernCapabilities struct {
	Roots       struct{}                     `json:"roots"`
	Elicitation *mcp.ElicitationCapabilities `json:"elicitation,omitempty"`
	Sampling    *mcp.SamplingCapabilities    `json:"sampling,omitempty"`
}

// probeTimeout returns how long the server may take to answer server/discover before it is treated
// as a legacy server.
func (c *connection) probeTimeout() time.Duration {
	o := c.server.set.options
	if !c.server.config.isProcess() {
		// It answers each request, also an unknown one: silence means that it is slow.
		return o.limits.StartTimeout / 2
	}
	return o.Wait / 3 // a legacy server can still become ready while calls wait
}

// complete repeats a request, with the input that each result asks for, until it is complete.
func (c *connection) complete(
	ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler,
) (mcp.Result, error) {
	for n := 1; ; n++ {
		result, err := next(ctx, method, req)
		if err != nil {
			return nil, err
		}
		needed, requests, state := inputOf(result)
		switch {
		case !needed && len(requests) == 0:
			return result, nil
		case n >= mcproots.MaxRounds:
			return nil, fmt.Errorf("the server asked for input %d times and returned no result", n)
		}
		if len(requests) == 0 { // the server is busy
			if err := pause.For(ctx, time.Duration(n)*retryDelay); err != nil {
				return nil, err
			}
		}
		responses, err := c.respond(ctx, requests)
		if err != nil {
			return nil, err
		}
		switch params := req.GetParams().(type) {
		case *mcp.CallToolParams:
			params.InputResponses, params.RequestState = responses, state
		case *mcp.GetPromptParams:
			params.InputResponses, params.RequestState = responses, state
		case *mcp.ReadResourceParams:
			params.InputResponses, params.RequestState = responses, state
		}
	}
}

// inputOf reports whether a result needs input, and returns the requests for it and the state to
// send with it.
func inputOf(r mcp.Result) (needed bool, requests mcp.InputRequestMap, state string) {
	switch r := r.(type) {
	case *mcp.CallToolResult:
		return r.NeedsInput(), r.InputRequests, r.RequestState
	case *mcp.GetPromptResult:
		return r.NeedsInput(), r.InputRequests, r.RequestState
	case *mcp.ReadResourceResult:
		return r.NeedsInput(), r.InputRequests, r.RequestState
	}
	return false, nil, ""
}

// respond answers requests for roots, and requests that the user answers. It fails for other kinds
// of requests.
func (c *connection) respond(ctx context.Context, requests mcp.InputRequestMap) (
	responses mcp.InputResponseMap, err error) {
	if n := len(requests); n > mcproots.MaxInputRequests {
		return nil, fmt.Errorf("the server asked for %d inputs in one result, more than the "+
			"limit of %d", n, mcproots.MaxInputRequests)
	}
	responses = make(mcp.InputResponseMap, len(requests))
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		if method := methodOf(requests[key]); !c.offers(method) {
			return nil, fmt.Errorf("the server asked for %s, which this client does not offer",
				method)
		}
		switch request := requests[key].(type) {
		case *mcp.ListRootsParams:
			responses[key], err = c.listRoots()
		case *mcp.ElicitParams:
			responses[key], err = c.elicit(ctx, request)
		case *mcp.CreateMessageWithToolsParams:
			responses[key], err = c.sample(ctx, request)
		}
		if err != nil {
			return nil, err
		}
	}
	return responses, nil
}

// methodOf returns the method of a request for input.
func methodOf(request mcp.InputRequest) string {
	switch request.(type) {
	case *mcp.ListRootsParams:
		return mcproots.ListMethod
	case *mcp.ElicitParams:
		return "elicitation/create"
	}
	return "sampling/createMessage"
}

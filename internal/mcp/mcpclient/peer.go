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

// peer is a server as the MCP SDK reaches it. It sends roots in their order, in both eras of the
// protocol: the SDK would sort them. Its CallTool, GetPrompt and ReadResource own their params.
// Each server has its own client of the SDK, which sends the same list to all its servers.
type peer struct {
	*mcp.ClientSession
	sdk     *mcp.Client
	options mcp.ClientOptions
	// roots returns the list whenever the server asks for it. If it is nil, roots are not declared.
	roots func(context.Context) (mcproots.Snapshot, error)
	// probe is how long the server may take to answer server/discover before it is treated as a
	// legacy server.
	probe time.Duration
}

// newPeer returns a server to which nobody has connected. Its options have a logger, and the
// capabilities other than roots.
func newPeer(us *mcp.Implementation, o mcp.ClientOptions, probe time.Duration,
	roots func(context.Context) (mcproots.Snapshot, error)) *peer {
	if roots != nil {
		o.Capabilities.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	}
	o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	p := &peer{sdk: mcp.NewClient(us, &o), options: o, roots: roots, probe: probe}
	p.sdk.AddReceivingMiddleware(p.receive)
	p.sdk.AddSendingMiddleware(p.send)
	return p
}

// receive handles requests of the server. It rejects methods that were not offered: the SDK rejects
// some of them with another code, and panics at some malformed notifications.
func (p *peer) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				p.logPanic(v, method)
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
					Message: "the client failed to handle " + method}
			}
		}()
		switch {
		case method == mcproots.ListMethod && p.roots != nil:
			return p.listRoots(ctx)
		case p.offers(method):
			return next(ctx, method, req)
		default:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
				Message: fmt.Sprintf("this client does not offer %s", method)}
		}
	}
}

// logPanic notes a panic, which is probably the SDK's at a malformed message. A server can cause any
// number of them.
func (p *peer) logPanic(value any, method string) {
	p.options.Logger.Debug("panic", "method", method, "panic", fmt.Sprint(value),
		"stack", string(debug.Stack()))
}

// offers reports whether the SDK handles a method for this client. Sampling and elicitation need a
// handler.
func (p *peer) offers(method string) bool {
	switch method {
	case "ping", "notifications/cancelled", "notifications/progress", "notifications/message",
		"notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated",
		"notifications/subscriptions/acknowledged":
		return true
	case "sampling/createMessage":
		return p.options.CreateMessageWithToolsHandler != nil
	case "elicitation/create", "notifications/elicitation/complete":
		return p.options.ElicitationHandler != nil
	}
	return false
}

// listRoots returns the result of roots/list.
func (p *peer) listRoots(ctx context.Context) (*mcp.ListRootsResult, error) {
	roots, err := p.roots(ctx)
	if err != nil {
		p.options.Logger.Warn("cannot list the roots for an MCP server", "error", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: "the roots cannot be listed"}
	}
	return roots.List(), nil
}

// send declares roots to a modern server without listChanged, as that revision requires, limits how
// long a server may take to answer server/discover, and gives it the input that it asks for. It
// turns a panic into an error, because some malformed responses make the SDK panic.
func (p *peer) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				p.logPanic(v, method)
				err = errors.New("the server's response is malformed")
			}
		}()
		if params := req.GetParams(); params != nil {
			meta, c := params.GetMeta(), p.options.Capabilities
			if p.roots != nil && meta[mcp.MetaKeyClientCapabilities] != nil {
				meta[mcp.MetaKeyClientCapabilities] = modernCapabilities{
					Elicitation: c.Elicitation, Sampling: c.Sampling}
			}
		}
		if method == "server/discover" {
			probe, cancel := context.WithTimeout(ctx, p.probe)
			defer cancel()
			ctx = probe
		}
		if mcproots.MayAsk(method) {
			return p.complete(ctx, method, req, next)
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

// modern reports whether the server speaks revision 2026-07-28 or later, in which it asks for roots
// in results and cannot be notified of changes.
func (p *peer) modern() bool {
	r := p.InitializeResult()
	return r != nil && mcproots.IsModern(r.ProtocolVersion)
}

// announce notifies a legacy server to which roots were declared that they have changed. It blocks
// for up to 10 s while the server does not read.
func (p *peer) announce() {
	if p.roots == nil || p.modern() {
		return
	}
	// The SDK notifies the server whenever a root is added. This root is never listed.
	p.sdk.AddRoots(&mcp.Root{URI: "file:///"})
}

// complete repeats a request, with the input that each result asks for, until it is complete.
func (p *peer) complete(ctx context.Context, method string, req mcp.Request,
	next mcp.MethodHandler) (mcp.Result, error) {
	session, _ := req.GetSession().(*mcp.ClientSession)
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
		responses, err := p.respond(ctx, session, requests)
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
func (p *peer) respond(ctx context.Context, session *mcp.ClientSession,
	requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	if n := len(requests); n > mcproots.MaxInputRequests {
		return nil, fmt.Errorf("the server asked for %d inputs in one result, more than the "+
			"limit of %d", n, mcproots.MaxInputRequests)
	}
	responses := make(mcp.InputResponseMap, len(requests))
	var list *mcp.ListRootsResult
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		method := ""
		var err error
		switch request := requests[key].(type) {
		case *mcp.ListRootsParams:
			if method = mcproots.ListMethod; p.roots == nil {
				break
			}
			if list == nil {
				list, err = p.listRoots(ctx)
			}
			responses[key] = list
		case *mcp.ElicitParams:
			if method = "elicitation/create"; p.options.ElicitationHandler == nil ||
				request == nil {
				break
			}
			responses[key], err = p.options.ElicitationHandler(ctx,
				&mcp.ElicitRequest{Session: session, Params: request})
		case *mcp.CreateMessageWithToolsParams:
			if method = "sampling/createMessage"; request == nil ||
				p.options.CreateMessageWithToolsHandler == nil {
				break
			}
			responses[key], err = p.options.CreateMessageWithToolsHandler(ctx,
				&mcp.CreateMessageWithToolsRequest{Session: session, Params: request})
		}
		if err != nil {
			return nil, err
		}
		if responses[key] == nil {
			return nil, fmt.Errorf("the server asked for %s, which this client does not offer",
				method)
		}
	}
	return responses, nil
}

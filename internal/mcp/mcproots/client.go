package mcproots

//lint:file-ignore SA1019 the SDK marks roots and sampling as deprecated (SEP-2577); they are supported for existing servers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// retryDelay is the delay before a call is repeated for a server that asked for nothing, multiplied
// by the number of calls.
const retryDelay = 50 * time.Millisecond

// Options configure a [Client].
type Options struct {
	// SDK are the options of the SDK's client, such as handlers and a logger. Capabilities and
	// MultiRoundTrip are set here. Sampling and elicitation are declared only if their handlers are
	// set.
	SDK mcp.ClientOptions
	// Roots returns the list whenever a server asks for it. If it is nil, roots are not declared
	// and roots/list is unknown. It must be safe for concurrent use.
	Roots func(context.Context) (Snapshot, error)
	// Elicitation are the ways in which the server may ask the user through the SDK's
	// ElicitationHandler, or nil.
	Elicitation *mcp.ElicitationCapabilities
	// Sampling says what the SDK's CreateMessageWithToolsHandler supports, or nil.
	Sampling *mcp.SamplingCapabilities
	// OnList is called with each list that is sent to the server. It must not block.
	OnList func(Snapshot)
	// ProbeTimeout is how long a server may take to answer server/discover before it is treated as
	// a legacy server. Default 5 s.
	ProbeTimeout time.Duration
}

// Client is an MCP client that sends roots in their order, in both eras of the protocol. Use one
// Client for each server, because a client of the SDK sends the same list to all its servers.
type Client struct {
	sdk     *mcp.Client
	options Options
}

// NewClient returns a client that introduces itself as impl.
func NewClient(impl *mcp.Implementation, o Options) *Client {
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 5*time.Second)
	o.SDK.Logger = cmp.Or(o.SDK.Logger, slog.New(slog.DiscardHandler))
	o.SDK.Capabilities = &mcp.ClientCapabilities{Elicitation: o.Elicitation, Sampling: o.Sampling}
	if o.Roots != nil {
		o.SDK.Capabilities.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	}
	o.SDK.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	c := &Client{sdk: mcp.NewClient(impl, &o.SDK), options: o}
	c.sdk.AddReceivingMiddleware(c.receive)
	c.sdk.AddSendingMiddleware(c.send)
	return c
}

// Connect begins a session with a server, as the SDK's Connect does. ctx only bounds the
// connecting.
func (c *Client) Connect(ctx context.Context, t mcp.Transport,
	o *mcp.ClientSessionOptions) (*Session, error) {
	session, err := c.sdk.Connect(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return &Session{ClientSession: session, client: c}, nil
}

// receive handles requests of the server. It rejects methods that were not offered: the SDK rejects
// some of them with another code, and panics at some malformed notifications.
func (c *Client) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
					Message: "the client failed to handle " + method}
			}
		}()
		switch {
		case method == ListMethod && c.options.Roots != nil:
			return c.listRoots(ctx)
		case c.offers(method):
			return next(ctx, method, req)
		default:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
				Message: fmt.Sprintf("this client does not offer %s", method)}
		}
	}
}

// offers reports whether the SDK handles a method for this client. Sampling and elicitation need a
// handler.
func (c *Client) offers(method string) bool {
	switch method {
	case "ping", "notifications/cancelled", "notifications/progress", "notifications/message",
		"notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated",
		"notifications/subscriptions/acknowledged":
		return true
	case "sampling/createMessage":
		return c.options.SDK.CreateMessageWithToolsHandler != nil
	case "elicitation/create", "notifications/elicitation/complete":
		return c.options.SDK.ElicitationHandler != nil
	}
	return false
}

// listRoots returns the result of roots/list.
func (c *Client) listRoots(ctx context.Context) (*mcp.ListRootsResult, error) {
	s, err := c.options.Roots(ctx)
	if err != nil {
		c.options.SDK.Logger.Warn("cannot list the roots for an MCP server", "error", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: "the roots cannot be listed"}
	}
	if c.options.OnList != nil {
		c.options.OnList(s)
	}
	return s.List(), nil
}

// send declares roots to a modern server without listChanged, as that revision requires, limits how
// long a server may take to answer server/discover, and gives it the input that it asks for. It turns
// a panic into an error, because some malformed responses make the SDK panic.
func (c *Client) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = errors.New("the server's response is malformed")
			}
		}()
		if params := req.GetParams(); params != nil {
			if meta := params.GetMeta(); c.options.Roots != nil &&
				meta[mcp.MetaKeyClientCapabilities] != nil {
				meta[mcp.MetaKeyClientCapabilities] = modernCapabilities{
					Elicitation: c.options.Elicitation, Sampling: c.options.Sampling}
			}
		}
		if method == "server/discover" {
			probe, cancel := context.WithTimeout(ctx, c.options.ProbeTimeout)
			defer cancel()
			ctx = probe
		}
		if MayAsk(method) {
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

// Session is a session with one server. Its CallTool, GetPrompt and ReadResource own their params,
// and answer a modern server that asks for the roots: the SDK would send its own sorted list.
type Session struct {
	*mcp.ClientSession
	client *Client
}

// Modern reports whether the server speaks revision 2026-07-28 or later, in which it asks for roots
// in results and cannot be notified of changes.
func (s *Session) Modern() bool {
	r := s.InitializeResult()
	return r != nil && IsModern(r.ProtocolVersion)
}

// Announce notifies a legacy server that the roots have changed. It does nothing for a modern
// server, which asks again in each call. It blocks for up to 10 s while the server does not read.
func (s *Session) Announce() {
	if s.client.options.Roots == nil || s.Modern() {
		return
	}
	// The SDK notifies the server whenever a root is added. This root is never listed.
	s.client.sdk.AddRoots(&mcp.Root{URI: "file:///"})
}

// complete repeats a request, with the input that each result asks for, until it is complete.
func (c *Client) complete(ctx context.Context, method string, req mcp.Request,
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
		case n >= MaxRounds:
			return nil, fmt.Errorf("the server asked for input %d times and returned no result", n)
		}
		if len(requests) == 0 { // the server is busy
			if err := pause.For(ctx, time.Duration(n)*retryDelay); err != nil {
				return nil, err
			}
		}
		responses, err := c.respond(ctx, session, requests)
		if err != nil {
			return nil, err
		}
		switch p := req.GetParams().(type) {
		case *mcp.CallToolParams:
			p.InputResponses, p.RequestState = responses, state
		case *mcp.GetPromptParams:
			p.InputResponses, p.RequestState = responses, state
		case *mcp.ReadResourceParams:
			p.InputResponses, p.RequestState = responses, state
		}
	}
}

// inputOf reports whether a result needs input, and returns the requests for it and the state to send
// with it.
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
func (c *Client) respond(ctx context.Context, session *mcp.ClientSession,
	requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	if n := len(requests); n > MaxInputRequests {
		return nil, fmt.Errorf("the server asked for %d inputs in one result, more than the "+
			"limit of %d", n, MaxInputRequests)
	}
	responses := make(mcp.InputResponseMap, len(requests))
	var list *mcp.ListRootsResult
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		method := ""
		var err error
		switch request := requests[key].(type) {
		case *mcp.ListRootsParams:
			if method = ListMethod; c.options.Roots == nil {
				break
			}
			if list == nil {
				list, err = c.listRoots(ctx)
			}
			responses[key] = list
		case *mcp.ElicitParams:
			if method = "elicitation/create"; c.options.SDK.ElicitationHandler == nil ||
				request == nil {
				break
			}
			responses[key], err = c.options.SDK.ElicitationHandler(ctx,
				&mcp.ElicitRequest{Session: session, Params: request})
		case *mcp.CreateMessageWithToolsParams:
			if method = "sampling/createMessage"; request == nil ||
				c.options.SDK.CreateMessageWithToolsHandler == nil {
				break
			}
			responses[key], err = c.options.SDK.CreateMessageWithToolsHandler(ctx,
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

// FixInputRequests makes a server's message readable for the SDK. The SDK rejects a request for
// roots without params, which the official TypeScript server sends, and panics at one that is null.
// Transports must pass received messages through it. It returns other messages as they are, and
// never changes message.
func FixInputRequests(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"inputRequests"`)) {
		return message
	}
	result := strictjson.Find(message, "result")
	var requests map[string]map[string]json.RawMessage
	if json.Unmarshal(strictjson.Find(result, "inputRequests"), &requests) != nil {
		return message
	}
	for key, request := range requests {
		if request == nil {
			request = map[string]json.RawMessage{}
			requests[key] = request
		}
		if params := request["params"]; len(params) == 0 || string(params) == "null" {
			request["params"] = json.RawMessage("{}")
		}
	}
	return strictjson.Set(message, "result",
		strictjson.Set(result, "inputRequests", strictjson.Encode(requests)))
}

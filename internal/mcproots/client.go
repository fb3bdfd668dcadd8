package mcproots

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577); they are served for the servers that there are

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// modern is the first revision in which roots travel inside results.
const modern = "2026-07-28"

// Options configure a [Client].
type Options struct {
	// SDK are options for the SDK's client: handlers and a logger. Capabilities and MultiRoundTrip are set
	// here. Sampling and elicitation are declared only if their handlers are set.
	SDK mcp.ClientOptions
	// Roots is asked each time a server wants the list. Nil: roots are not declared, and roots/list is unknown (M2).
	// It must be safe for concurrent use.
	Roots func(context.Context) (Snapshot, error)
	// Told hears of each list that a server is given. It must not block.
	Told func(Snapshot)
	// ProbeTimeout is how long a server may take to answer server/discover before it is taken for a legacy one. Default 5 s.
	ProbeTimeout time.Duration
	// MaxRounds is how often one call is repeated because the server asked for something. Default 10.
	MaxRounds int
	// MaxQuestions is how much one result may ask for. Default 100.
	MaxQuestions int
}

// Client is an MCP client that serves roots in their order, in both eras. Use one for each server: a client of the
// SDK tells all its servers one list, one after the other.
type Client struct {
	sdk     *mcp.Client
	options Options
}

// NewClient makes a client that introduces itself as impl.
func NewClient(impl *mcp.Implementation, o Options) *Client {
	if o.MaxRounds == 0 {
		o.MaxRounds = 10
	}
	if o.MaxQuestions == 0 {
		o.MaxQuestions = 100
	}
	if o.ProbeTimeout == 0 {
		o.ProbeTimeout = 5 * time.Second
	}
	if o.SDK.Logger == nil {
		o.SDK.Logger = slog.New(slog.DiscardHandler)
	}
	o.SDK.Capabilities = &mcp.ClientCapabilities{}
	if o.Roots != nil {
		o.SDK.Capabilities.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	}
	o.SDK.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	c := &Client{sdk: mcp.NewClient(impl, &o.SDK), options: o}
	c.sdk.AddReceivingMiddleware(c.receive)
	c.sdk.AddSendingMiddleware(c.send)
	return c
}

// Connect begins a session with a server, as the SDK's Connect does. ctx is for the beginning alone.
func (c *Client) Connect(ctx context.Context, t mcp.Transport, o *mcp.ClientSessionOptions) (*Session, error) {
	sdk, err := guarded(func() (*mcp.ClientSession, error) { return c.sdk.Connect(ctx, t, o) })
	if err != nil {
		return nil, err
	}
	return &Session{ClientSession: sdk, client: c}, nil
}

// receive answers what a server asks. What was not offered is unknown here, rather than left to the SDK, which has other
// codes for some of it, and a handler that a malformed notification makes panic.
func (c *Client) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client could not serve " + method}
			}
		}()
		switch {
		case method == "roots/list" && c.options.Roots != nil:
			return c.list(ctx)
		case c.offers(method):
			return next(ctx, method, req)
		default:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("this client does not offer %s", method)}
		}
	}
}

// offers reports whether the SDK serves a method here. Sampling needs a handler: without one it is unknown (M13).
func (c *Client) offers(method string) bool {
	switch method {
	case "ping", "notifications/cancelled", "notifications/progress", "notifications/message",
		"notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated",
		"notifications/subscriptions/acknowledged":
		return true
	case "sampling/createMessage":
		return c.options.SDK.CreateMessageHandler != nil || c.options.SDK.CreateMessageWithToolsHandler != nil
	case "elicitation/create", "notifications/elicitation/complete":
		return c.options.SDK.ElicitationHandler != nil
	}
	return false
}

// list is the answer to roots/list.
func (c *Client) list(ctx context.Context) (*mcp.ListRootsResult, error) {
	s, err := c.options.Roots(ctx)
	if err != nil {
		c.options.SDK.Logger.Warn("the roots cannot be listed for an MCP server", "error", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the roots cannot be listed"}
	}
	result := &mcp.ListRootsResult{Roots: make([]*mcp.Root, 0, s.Len())}
	for _, r := range s.All() {
		result.Roots = append(result.Roots, &mcp.Root{URI: r.URI, Name: r.Name})
	}
	if c.options.Told != nil {
		c.options.Told(s)
	}
	return result, nil
}

// send declares roots to a modern server as that revision does, without listChanged, and does not wait
// for ever to learn whether a server is one.
func (c *Client) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if params := req.GetParams(); params != nil {
			if meta := params.GetMeta(); c.options.Roots != nil && meta[mcp.MetaKeyClientCapabilities] != nil {
				meta[mcp.MetaKeyClientCapabilities] = modernCapabilities{}
			}
		}
		if method == "server/discover" {
			probe, cancel := context.WithTimeout(ctx, c.options.ProbeTimeout)
			defer cancel()
			ctx = probe
		}
		return next(ctx, method, req)
	}
}

// modernCapabilities are those of a client that offers roots and nothing else.
type modernCapabilities struct {
	Roots struct{} `json:"roots"`
}

// guarded turns a panic in the SDK, which some malformed answers of servers cause, into an error.
func guarded[T any](call func() (T, error)) (_ T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the server's answer cannot be read: %v", p)
		}
	}()
	return call()
}

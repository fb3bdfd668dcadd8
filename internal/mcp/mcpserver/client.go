package mcpserver

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577); they are supported for existing clients

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// client is a connection, an HTTP session, or a single request of a modern HTTP client.
type client struct {
	server *Server
	sdk    *mcp.Server // which serves only this client
	// onlyDuringCalls reports whether a legacy client may be asked for its roots only while it
	// waits for a call: over HTTP, it may not be listening at other times.
	onlyDuringCalls bool
	mentions        discovery.Mentions // of instructions, in results
	slots           *callSlots         // for its tool calls

	ready     chan struct{} // closed when a legacy client has sent notifications/initialized
	markReady func()        // closes ready

	initialized atomic.Bool                         // whether initialize was received
	follower    atomic.Pointer[follower]            // of the client's roots, nil if they are not used
	listed      atomic.Pointer[mcp.ListRootsResult] // the roots that it has listed last, or nil
}

// newClient returns a client that has not connected yet.
func (s *Server) newClient(slots *callSlots, onlyDuringCalls bool) *client {
	ready := make(chan struct{})
	c := &client{
		server: s, slots: slots, onlyDuringCalls: onlyDuringCalls,
		ready: ready, markReady: sync.OnceFunc(func() { close(ready) }),
		// The agent of a session is told in another way.
		mentions: discovery.Mentions{Roots: s.options.Session == nil},
	}
	said := instructions
	switch {
	case s.options.Only != nil:
		said = s.options.Context
	case s.options.Session != nil:
		said = sessionInstructions + instructions
		if s.options.Context != "" {
			said += "\n\n" + s.options.Context
		}
	}
	capabilities := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	if s.options.Only == nil {
		capabilities.Resources = &mcp.ResourceCapabilities{}
		capabilities.Prompts = &mcp.PromptCapabilities{ListChanged: true}
	}
	c.sdk = mcp.NewServer(
		&mcp.Implementation{Name: "acp-agent", Version: s.options.Version},
		&mcp.ServerOptions{
			Instructions: said,
			// the SDK logs mistakes of clients as errors
			Logger:       slog.New(slog.DiscardHandler),
			Capabilities: capabilities,
		},
	)
	c.sdk.AddReceivingMiddleware(c.receive)
	c.addTools()
	if s.options.Only == nil {
		c.addResources()
	}
	c.promptsChanged() // registers the prompts
	if s.extraTools != nil {
		s.extraTools(c.sdk, c)
	}
	return c
}

const (
	instructions = "Tools for files in one or more folders. The first is the working directory, " +
		"where relative paths start; use absolute paths for files in the others. list_roots " +
		"lists the folders, and says why others are not accessible."
	// sessionInstructions precede them if the client is an agent with its own tools.
	sessionInstructions = "Use these tools for files outside the working directory. "
)

// receive handles a client's declarations about itself and its roots before the SDK serves the
// request.
func (c *client) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (_ mcp.Result, err error) {
		defer c.server.recovered(method, &err)
		switch method {
		case "initialize":
			c.initialize(r)
		case "notifications/initialized":
			if f := c.follower.Load(); f != nil && !c.onlyDuringCalls {
				f.askNow(ctx)
			}
			c.markReady() // last, or a call that waits for it could ask first, and the client twice
		case mcproots.ChangedMethod:
			if f := c.follower.Load(); f != nil && !c.onlyDuringCalls {
				f.askNow(ctx)
			} else if f != nil {
				f.changed()
			}
		case "prompts/list":
			return c.listPrompts(ctx, r)
		case "tools/call":
			return c.takeTurn(ctx, r, next)
		case "prompts/get":
			ctx = withPromptName(ctx, r)
		}
		result, err := next(ctx, method, r)
		return result, withCode(ctx, err)
	}
}

// takeTurn passes a call of a tool on when there are slots for it.
func (c *client) takeTurn(ctx context.Context, r mcp.Request, next mcp.MethodHandler) (
	result mcp.Result, err error) {
	var called tools.Tool
	if params, ok := r.GetParams().(*mcp.CallToolParamsRaw); ok {
		for _, t := range c.server.tools {
			if t.Name == params.Name {
				called = t
			}
		}
	}
	err = c.slots.use(ctx, called, func() (err error) {
		result, err = next(ctx, "tools/call", r)
		return err
	})
	return result, withCode(ctx, err)
}

// awaitReady waits until a client may be sent requests, but not for ever: some never say so.
func (c *client) awaitReady(ctx context.Context) error {
	select {
	case <-c.ready:
	case <-time.After(c.server.options.Timeout):
		c.markReady()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// withCode returns an error of a request with a code of JSON-RPC. The SDK's own errors have none.
func withCode(ctx context.Context, err error) error {
	known := (*jsonrpc.Error)(nil)
	if err == nil || ctx.Err() != nil || errors.As(err, &known) && known.Code != 0 {
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
}

// initialize starts to follow the client's roots if they are used.
func (c *client) initialize(r mcp.Request) {
	params, ok := r.GetParams().(*mcp.InitializeParams)
	session, connected := r.GetSession().(*mcp.ServerSession)
	if !ok || params == nil || !connected {
		return
	}
	if mcproots.IsModern(params.ProtocolVersion) {
		// otherwise the SDK would treat a client that sends initialize as modern
		params.ProtocolVersion = mcproots.Legacy
	}
	if c.initialized.Swap(true) {
		return // the SDK rejects it
	}
	if c.server.configured == nil && c.server.options.Session == nil &&
		params.Capabilities != nil && params.Capabilities.RootsV2 != nil {
		ask := func(ctx context.Context) (*scope, error) { return c.ask(ctx, session) }
		maxAge := time.Duration(0)
		if !params.Capabilities.RootsV2.ListChanged {
			maxAge = c.server.options.limits.rootsAge
		}
		c.follower.Store(newFollower(ask, c.server.options.Timeout, maxAge))
	}
	c.server.watch(session, c)
}

// ask asks a legacy client for its roots and opens them.
func (c *client) ask(ctx context.Context, session *mcp.ServerSession) (*scope, error) {
	list, err := session.ListRoots(ctx, nil)
	if err != nil {
		if ctx.Err() == nil {
			c.server.log.Warn("cannot get the roots of a client", "error", err)
		}
		if refusal := (*jsonrpc.Error)(nil); ctx.Err() == nil && !errors.As(err, &refusal) {
			err = errors.New("its answer is malformed")
		}
		return nil, fmt.Errorf("the client did not list its roots: %w", err)
	}
	if before := c.listed.Swap(list); before != nil && !reflect.DeepEqual(before, list) {
		c.promptsChanged()
	}
	return c.server.openList(ctx, list)
}

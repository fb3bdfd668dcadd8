package mcpserver

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577); they are followed for the clients that there are

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcproots"
)

const (
	// modern is the first revision in which a server asks within results, and nobody sends initialize.
	modern = "2026-07-28"
	// legacy is the last revision before.
	legacy = "2025-11-25"
)

// asking says when a client that sent initialize may be asked for its roots.
type asking int

const (
	// atOnce: whenever they may have changed, as a stdio client can be.
	atOnce asking = iota
	// withinCalls: only while it waits for the answer of a call, since else nobody may be listening.
	withinCalls
)

// client is one connection, or over HTTP one session, or one request of a client that has none.
type client struct {
	server *Server
	ask    asking

	mu       sync.Mutex
	begun    bool                       // initialize came
	follower *mcproots.Follower[*scope] // from then on, if the client has roots and they are used
}

// receive looks at what the client says of itself and its roots, before the SDK serves it.
func (c *client) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (_ mcp.Result, err error) {
		defer c.server.recovered(method, &err)
		switch method {
		case "initialize":
			if err := c.begin(r); err != nil {
				return nil, err
			}
		case "notifications/initialized":
			if f := c.following(); f != nil && c.ask == atOnce {
				f.AskNow(ctx)
			}
		case "notifications/roots/list_changed":
			if f := c.following(); f != nil && c.ask == atOnce {
				f.AskNow(ctx)
			} else if f != nil {
				f.Changed()
			}
		case "prompts/list":
			return c.listPrompts(ctx, r)
		case "prompts/get":
			ctx = promptNamed(ctx, r)
		}
		return next(ctx, method, r)
	}
}

// begin notes what an initialize says. The error is that there are too many sessions.
func (c *client) begin(r mcp.Request) error {
	params, ok := r.GetParams().(*mcp.InitializeParams)
	session, connected := r.GetSession().(*mcp.ServerSession)
	if !ok || params == nil || !connected {
		return nil
	}
	if params.ProtocolVersion >= modern {
		params.ProtocolVersion = legacy // else the SDK would take who sends initialize for one that is asked within results
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		return nil // the SDK refuses it
	}
	if err := c.server.watch(session, c); err != nil {
		return err
	}
	c.begun = true
	if c.server.fixed != nil || params.Capabilities == nil || params.Capabilities.RootsV2 == nil {
		return nil
	}
	o := mcproots.FollowOptions[*scope]{
		Timeout: c.server.options.Timeout,
		Ask:     func(ctx context.Context) (*scope, error) { return c.server.asked(ctx, session) },
		Drop:    (*scope).close,
	}
	if !params.Capabilities.RootsV2.ListChanged {
		o.MaxAge = c.server.options.MaxAge
	}
	c.follower = mcproots.NewFollower(o)
	return nil
}

// following is the client's follower, nil if its roots are not used.
func (c *client) following() *mcproots.Follower[*scope] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.follower
}

// gone says that the client will not answer any more.
func (c *client) gone() {
	if f := c.following(); f != nil {
		f.Gone()
	}
}

// asked asks a client that sent initialize for its roots, and opens them.
func (s *Server) asked(ctx context.Context, session *mcp.ServerSession) (*scope, error) {
	list, err := session.ListRoots(ctx, nil)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the client does not say its roots", "error", err)
		}
		return nil, fmt.Errorf("the client does not say its roots: %w", err)
	}
	return s.listed(ctx, list)
}

// listed opens the roots of a client's list.
func (s *Server) listed(ctx context.Context, list *mcp.ListRootsResult) (*scope, error) {
	offers, err := mcproots.Offers(list)
	if err != nil {
		s.log.Warn("a client's list of roots is too long", "error", err)
	}
	return s.offered(ctx, offers)
}

// rootsKey names the question for the roots in a result.
const rootsKey = "roots"

// needed says what a request needs of the scope.
type needed int

const (
	// files: some that can be reached.
	files needed = iota
	// anything: also one that says why nothing can be.
	anything
)

// errQuestion: the client is to be asked for its roots within the result.
var errQuestion = errors.New("the client is asked for its roots first")

// asker is a request in the course of which a client can be asked for its roots.
type asker struct {
	revision     string
	capabilities *mcp.ClientCapabilities
	responses    mcp.InputResponseMap
	state        string   // what came back with the responses
	parts        [][]byte // what the request is, as it was when the question was asked
}

// within calls use with the scope of a request. It returns errQuestion if the client is to be asked first, and a
// *[jsonrpc.Error] for a client that is to be told by one.
func (c *client) within(ctx context.Context, a asker, n needed, use func(*scope) error) error {
	switch s := c.server; {
	case s.fixed != nil:
		return use(s.fixed)
	case a.revision >= modern:
		return c.withinModern(ctx, a, n, use)
	default:
		f := c.following()
		if f == nil {
			return c.withoutRoots(use)
		}
		used := false
		err := f.Use(ctx, func(sc *scope) error {
			used = true
			return use(sc)
		})
		if used || ctx.Err() != nil {
			return err
		}
		return use(closed(fromClient, err.Error(), nil))
	}
}

// withinModern is within for a client that is asked within results.
func (c *client) withinModern(ctx context.Context, a asker, n needed, use func(*scope) error) error {
	s := c.server
	if a.capabilities == nil || a.capabilities.RootsV2 == nil {
		if s.fallback == nil && n == files {
			return errNoRoots()
		}
		return c.withoutRoots(use)
	}
	if a.state != "" && !s.seal.matches(a.state, a.parts...) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not that of the question for this request: call again without it"}
	}
	answer, answered := a.responses[rootsKey]
	if !answered || a.state == "" {
		return errQuestion
	}
	s.warnDeprecated(a.revision)
	list, ok := answer.(*mcp.ListRootsResult)
	if !ok {
		return use(closed(fromClient, "the client's answer is not a list of roots", nil))
	}
	sc, err := s.listed(ctx, list)
	if err != nil {
		return err
	}
	defer sc.close()
	return use(sc)
}

// withoutRoots is the scope of a client without the roots capability.
func (c *client) withoutRoots(use func(*scope) error) error {
	if sc := c.server.fallback; sc != nil {
		return use(sc)
	}
	return use(closed(fromNowhere, "the client has no roots capability, and the server was started without --root or --fallback-root", nil))
}

// errNoRoots tells a modern client what it would have to be capable of.
func errNoRoots() error {
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "this needs the client's roots: declare the roots capability, or start the server with --root DIR",
		Data:    []byte(`{"requiredCapabilities":{"roots":{}}}`),
	}
}

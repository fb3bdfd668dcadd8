package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// Server serves MCP clients. It is safe for concurrent use, by any number of them.
type Server struct {
	options  Options
	log      *slog.Logger
	tools    []tools.Tool
	fixed    *scope // nil: each client's
	fallback *scope // nil: there is none
	warned   atomic.Bool
	seal     *seal
	more     func(*mcp.Server, *client) // tools that tests add

	mu       sync.Mutex
	ending   bool
	sessions map[*mcp.ServerSession]bool // those that initialize began
	watching sync.WaitGroup
}

// Open opens the configured roots and the fallback. The error says which cannot be opened. The caller closes the server.
func Open(ctx context.Context, o Options) (*Server, error) {
	o = o.withDefaults()
	s := &Server{
		options: o, log: o.Logger, tools: tools.New(nil, o.Tools).Tools(), sessions: map[*mcp.ServerSession]bool{},
		seal: newSeal(), more: func(*mcp.Server, *client) {},
	}
	var err error
	if !o.Roots.IsZero() {
		if s.fixed, err = s.configured(ctx, configured, o.Roots); err != nil {
			return nil, err
		}
	}
	if !o.Fallback.IsZero() {
		if s.fallback, err = s.configured(ctx, fallback, o.Fallback); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close ends the sessions that there are, waits for them, and frees the roots.
func (s *Server) Close() {
	s.mu.Lock()
	s.ending = true
	open := slices.Collect(maps.Keys(s.sessions))
	s.mu.Unlock()
	for _, session := range open {
		_ = session.Close()
	}
	s.watching.Wait()
	for _, sc := range []*scope{s.fixed, s.fallback} {
		if sc != nil {
			sc.close()
		}
	}
}

// watch frees what a client has when its session ends. It refuses one that is too many.
func (s *Server) watch(session *mcp.ServerSession, c *client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch limit := s.options.MaxSessions; {
	case s.ending:
		return nil // its follower has not asked, and will not
	case c.ask == withinCalls && len(s.sessions) >= limit:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("%d sessions are open, which is the limit: end one, or wait", limit)}
	}
	s.sessions[session] = true
	s.watching.Go(func() {
		_ = session.Wait()
		if f := c.following(); f != nil {
			f.Close()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, session)
	})
	return nil
}

// forClient makes the SDK's server for one client.
func (s *Server) forClient(c *client) *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: s.options.Name, Version: s.options.Version},
		&mcp.ServerOptions{
			Instructions: instructions,
			Logger:       slog.New(slog.DiscardHandler), // it logs what clients do wrong as errors
			Capabilities: &mcp.ServerCapabilities{
				Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}, Prompts: &mcp.PromptCapabilities{},
			},
		},
	)
	server.AddReceivingMiddleware(c.receive)
	for _, t := range s.tools {
		if t.Name != listRootsName {
			server.AddTool(declared(t), c.handler(t.Name))
		}
	}
	server.AddTool(declaredListRoots(), c.listRoots)
	c.addResources(server)
	server.AddPrompt(&mcp.Prompt{Name: anyPrompt}, c.getPrompt)
	s.more(server, c)
	return server
}

const instructions = "Tools for files in the client's roots. Relative paths start in the first root. " +
	"list_roots tells which roots there are, and why one is missing."

// declared is a tool as clients are told of it.
func declared(t tools.Tool) *mcp.Tool {
	no := false
	return &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description,
		InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		Annotations: &mcp.ToolAnnotations{
			Title: t.Title, ReadOnlyHint: t.Annotations.ReadOnly, DestructiveHint: &t.Annotations.Destructive,
			IdempotentHint: t.Annotations.Idempotent, OpenWorldHint: &no,
		},
	}
}

// recovered turns a panic into the error of one request.
func (s *Server) recovered(method string, err *error) {
	if v := recover(); v != nil {
		s.log.Error("a request panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
		*err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("%s failed within the server", method)}
	}
}

// warnDeprecated says once that roots were negotiated in a revision that deprecates them (M7).
func (s *Server) warnDeprecated(revision string) {
	if !s.warned.Swap(true) {
		s.log.Warn("a client's roots are used, which MCP deprecates since this revision: --root names the directories instead",
			"revision", revision)
	}
}

// Options configure a [Server]. The zero value works within its clients' roots.
type Options struct {
	// Name and Version are what the server introduces itself with. Default "acp-agent", "dev".
	Name, Version string
	// Roots, if not zero, are the scope of every client.
	Roots workspace.Roots
	// Fallback, if not zero, is the scope of clients that have no roots capability.
	Fallback workspace.Roots
	// Workspace bounds root sets and says which are allowed: clients' roots by the same rules as the others.
	Workspace workspace.Options
	// Tools bound the tools. Without a Permit, those that change files are not offered.
	Tools tools.Options
	// Timeout is how long a client may take to say its roots. Default 5 s.
	Timeout time.Duration
	// MaxAge is how old the roots may be of a client that does not tell of changes. Default 5 s (M8).
	MaxAge time.Duration
	// MaxMessage is the longest message that is read, in bytes. Default 64 MiB.
	MaxMessage int
	// MaxPending is how many requests of a stdio client, or of all HTTP clients together, are worked on at once; more are
	// refused until some are answered and read. It bounds the memory that answers take which nobody reads. Default 256.
	MaxPending int
	// MaxSessions is how many sessions HTTP clients may have open. Default 100.
	MaxSessions int
	// BodyTimeout is how long the body of an HTTP request may take to come. Default 30 s.
	BodyTimeout time.Duration
	// EndGrace is how long calls may go on when the client has closed its end. Default 2 s.
	EndGrace time.Duration
	// Logger takes what a person running the server should know. Default: discarded.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "acp-agent"
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.MaxAge <= 0 {
		o.MaxAge = 5 * time.Second
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = 64 << 20
	}
	if o.MaxPending <= 0 {
		o.MaxPending = 256
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 100
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = 30 * time.Second
	}
	if o.EndGrace <= 0 {
		o.EndGrace = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

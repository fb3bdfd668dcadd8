package mcpserver

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577); they are supported for existing clients

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wire "github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// Options configure a [Server]. The zero value serves each client within its own roots.
type Options struct {
	// Version is the version that the server reports. Default "dev".
	Version string
	// Roots, if not zero, are the scope of every client.
	Roots workspace.Roots
	// Session, if not nil, returns the roots of the session that the server belongs to, and the
	// real path to which each must still lead. It is called in each call of a tool, and its result
	// is the scope of every client. Without roots no file is accessible.
	Session func(context.Context) ([]workspace.Root, error)
	// Context is the text in the server's instructions for the model of the agent in Session.
	Context string
	// Only has the names of the tools to serve; nil means all. If it is not nil, the server serves
	// nothing else, and its instructions are Context.
	Only []string
	// Workspace limits and restricts all root sets, including those of clients.
	Workspace workspace.Options
	// Guard, if not nil, returns the workspace in which the user's rules hold, for one that was
	// opened.
	Guard func(context.Context, *workspace.Workspace) (*workspace.Workspace, error)
	// Permit decides about changes to files. If it is nil, there are no tools that change files.
	Permit tools.Permit
	// Timeout is how long a client may take to list its roots. Default 5 s.
	Timeout time.Duration
	// MaxMessage is the longest message that is accepted, in bytes. Default 64 MiB. Over HTTP,
	// messages longer than 4 MiB are rejected in any case.
	MaxMessage int
	// Token is the bearer token that HTTP clients must send. If it is empty, they need none.
	Token string
	// Logger receives messages for the person who runs the server. Default: discarded.
	Logger *slog.Logger

	limits limits
}

// limits protect the server. A zero field means its default.
type limits struct {
	// how long the roots of a client that does not announce changes are used; default 5 s
	rootsAge time.Duration
	grace    time.Duration // for calls to finish after a client has closed its input; default 2 s

	// For one stdio client, or all HTTP clients together:

	calls int // running calls; default 32
	files int // running searches, and other calls that hold whole files in memory; default 4 each
}

func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "dev")
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.MaxMessage = cmp.Or(o.MaxMessage, 64<<20)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.limits = limits{
		rootsAge: cmp.Or(o.limits.rootsAge, 5*time.Second),
		grace:    cmp.Or(o.limits.grace, 2*time.Second),
		calls:    cmp.Or(o.limits.calls, 32),
		files:    cmp.Or(o.limits.files, 4),
	}
	return o
}

// Server serves MCP clients. It is safe for concurrent use by any number of them.
type Server struct {
	options    Options
	log        *slog.Logger
	tools      []tools.Tool
	configured *scope // nil if clients' roots are used
	warned     atomic.Bool
	signer     signer
	httpSlots  *callSlots                 // of all HTTP clients
	extraTools func(*mcp.Server, *client) // added by tests; may be nil

	mu       sync.Mutex
	closing  bool
	sessions map[*mcp.ServerSession]bool // of legacy clients
	watching sync.WaitGroup
}

// Open creates a server. It opens the configured roots, and fails if one cannot be opened. The
// caller must close the server.
func Open(ctx context.Context, o Options) (*Server, error) {
	o = o.withDefaults()
	s := &Server{
		options: o, log: o.Logger, tools: o.tools(),
		sessions: map[*mcp.ServerSession]bool{}, httpSlots: newCallSlots(o.limits),
	}
	_, _ = rand.Read(s.signer.key[:]) // never fails
	if !o.Roots.IsZero() {
		var err error
		if s.configured, err = s.openConfigured(ctx, sourceConfigured, o.Roots); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// tools returns the tools that are served.
func (o Options) tools() []tools.Tool {
	all := tools.New(nil, tools.Options{Permit: o.Permit}).Tools()
	if o.Only == nil {
		return all
	}
	return slices.DeleteFunc(all, func(t tools.Tool) bool { return !slices.Contains(o.Only, t.Name) })
}

// Close ends all sessions, waits for them, and closes the roots.
func (s *Server) Close() {
	s.mu.Lock()
	s.closing = true
	open := slices.Collect(maps.Keys(s.sessions))
	s.mu.Unlock()
	for _, session := range open {
		_ = session.Close()
	}
	s.watching.Wait()
	if s.configured != nil {
		s.configured.close()
	}
}

// watch releases a legacy client's roots when its session ends.
func (s *Server) watch(session *mcp.ServerSession, c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return // the client will never be asked for roots
	}
	s.sessions[session] = true
	s.watching.Go(func() {
		_ = session.Wait()
		if f := c.follower.Load(); f != nil {
			f.close()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, session)
	})
}

// recovered turns a panic into an error response to one request.
func (s *Server) recovered(method string, err *error) {
	if v := recover(); v != nil {
		wire.LogPanic(s.log, v, "method", method)
		*err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("%s failed inside the server", method)}
	}
}

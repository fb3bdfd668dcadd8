package acp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Serve serves an ACP client that writes to in and reads from out, until in or ctx ends. It answers
// the requests that it has read by then, running turns as cancelled, and stores everything that was
// acknowledged. Serve returns nil when in or ctx ended, and an error if a stream broke. It leaves
// nothing running, except a read from in if that cannot be closed, and a backend that does not end
// within a second.
//
// Serve trusts the client. A [Server] serves clients of several users.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	s := NewServer(ServerOptions{PerPeer: Limits{Sessions: o.tuning.MaxSessions}})
	return s.serve(ctx, jsonrpc.NewLines(in, out, o.MaxLine), Peer{}, o)
}

// Peer describes who is at the other end of a connection. The program authenticates the peer; the
// server does not.
type Peer struct {
	// Principal names the user. Limits per peer hold for all connections of a principal together.
	Principal string
	// Via names what the peer came with, such as a token, for ServerOptions.Options. May be empty.
	Via string
	// Remote says that the client is not trusted with this machine. It may open only roots in
	// Options.Workspace.Policy.Allow, and use only MCP servers that Options.MCPPolicy allows by
	// name. The MCP servers get the environment Options.Environment.
	Remote bool
	// Role says what the peer may do. Default: everything.
	Role Role
	// Limits replace ServerOptions.PerPeer for this principal, where they are not 0. The last
	// connection's hold.
	Limits Limits
}

// ServerOptions configure a [Server].
type ServerOptions struct {
	// Options returns the options for a new connection of a peer. An error ends Serve. It is
	// required, and may be called concurrently.
	//
	// Peers with the same principal get the same Store, or one with the same sessions; peers with
	// different principals must not.
	Options func(Peer) (Options, error)
	// PerPeer limits what the connections of one principal may use together, and Total what all
	// connections may.
	PerPeer, Total Limits
	// Grace is how long the turns of a remote peer go on after the last connection that views their
	// session has ended without session/close, so that the peer can load the session again over
	// another connection. Default 10 minutes. A negative Grace ends turns with their connection,
	// and only one connection at a time has a session open. Turns of other peers always end with
	// their connection. All turns end with the context of Serve.
	Grace time.Duration
}

// Server serves the connections of any number of users. Its methods are safe for concurrent use.
type Server struct {
	options ServerOptions
	ctx     context.Context // ends when Shutdown gives up waiting
	stop    context.CancelFunc
	running sync.WaitGroup // connections, and adapters that outlive theirs

	mu         sync.Mutex
	used       Limits
	principals map[string]*principal // that use something
	closing    bool                  // by Shutdown
	noTurns    chan struct{}         // closed when it is closing and no turn is left
}

// NewServer returns a server.
func NewServer(o ServerOptions) *Server {
	o.PerPeer.Sessions = cmp.Or(o.PerPeer.Sessions, 1_000)
	o.Grace = max(0, cmp.Or(o.Grace, 10*time.Minute))
	s := &Server{options: o, principals: make(map[string]*principal), noTurns: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Serve serves the client at the other end of c until c or ctx ends, as the function [Serve] does,
// and then closes c. If c ends, the running turns of a remote peer may go on without it, and use
// the Options that it got, until ctx ends, even after Serve has returned. Serve returns
// [ErrServerClosed] after Shutdown, and an error that says so if there are too many connections. A
// client that is not served gets the reason in the answer to its first request.
func (s *Server) Serve(ctx context.Context, c Conn, p Peer) error {
	defer c.Close()
	o, err := s.options.Options(p)
	if err != nil {
		jsonrpc.Refuse(ctx, newTransport(c, 0), jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err))
		return err
	}
	return s.serve(ctx, newTransport(c, o.MaxLine), p, o)
}

func (s *Server) serve(ctx context.Context, t jsonrpc.Transport, p Peer, o Options) error {
	if o.Backend == nil || o.Store == nil {
		return errors.New("acp: Options need a Backend and a Store")
	}
	owner, err := s.begin(p)
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		jsonrpc.Refuse(ctx, t, refused)
		return errors.New("acp: " + refused.Message)
	}
	if err != nil {
		return err
	}
	defer owner.endConnection()
	stopped := sync.OnceFunc(owner.serving.Done) // no more requests are read
	defer stopped()                              // also after a panic
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(owner.ctx, cancel)()
	c := connect(ctx, t, p, o.withDefaults(), owner.homeOf(p))
	if c.home.isShared() {
		defer owner.leaveHome(c)
	} else {
		defer c.adapter.end()
	}
	defer stopped()
	return c.Serve(serving)
}

// begin counts a connection of p. It returns a [*jsonrpc.Error] if there are too many.
func (s *Server) begin(p Peer) (*principal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, ErrServerClosed
	}
	owner := s.principals[p.Principal]
	if owner == nil {
		owner = &principal{server: s, name: p.Principal}
		owner.ctx, owner.end = context.WithCancel(s.ctx)
		owner.shared = &home{owner: owner, grace: s.options.Grace}
	}
	owner.limits = p.Limits.or(s.options.PerPeer)
	if refused := owner.takeLocked(connectionSlot); refused != nil {
		owner.forgetLocked()
		return nil, refused
	}
	s.principals[p.Principal] = owner
	s.running.Add(1)
	owner.serving.Add(1)
	return owner, nil
}

// ErrServerClosed is returned by [Server.Serve] after [Server.Shutdown].
var ErrServerClosed = errors.New("acp: the server is shutting down")

// Shutdown ends the server. From now on there are no new connections, sessions and turns. When the
// running turns are answered, or ctx ends, Shutdown ends the connections and waits for them. It
// returns nil, or the cause of ctx if that ended turns.
func (s *Server) Shutdown(ctx context.Context) (err error) {
	select {
	case <-s.close():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.stop()
	s.running.Wait()
	return err
}

// End ends the connections of a principal, and the turns that have outlived a connection. Later
// connections of the principal go on. The returned function waits until those that End has ended
// read no more requests, which none of their requests may do. It is nil if there were none.
func (s *Server) End(name string) (wait func()) {
	s.mu.Lock()
	p := s.principals[name]
	delete(s.principals, name)
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	p.end()
	return p.serving.Wait
}

// Used returns how many connections, active sessions and unanswered prompts there are.
func (s *Server) Used() Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// UsedBy returns what the connections of a principal use.
func (s *Server) UsedBy(name string) Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.principals[name]
	if p == nil {
		return Limits{}
	}
	return p.used
}

// close makes take fail, and returns a channel that is closed when no turn is left.
func (s *Server) close() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing && s.used.Turns == 0 {
		close(s.noTurns)
	}
	s.closing = true
	return s.noTurns
}

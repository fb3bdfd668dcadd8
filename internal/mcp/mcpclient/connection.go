package mcpclient

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577)

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/text"
)

// connection is one connection to a server, with a client of the MCP SDK. A reconnected server has
// a new one.
type connection struct {
	server       *server
	client       *mcp.Client
	capabilities *mcp.ClientCapabilities           // of the client
	session      atomic.Pointer[mcp.ClientSession] // nil before it is connected
	link         link                              // to the server
	readiness    *readiness
	ended        chan struct{}                     // closed when the connection has ended
	over         chan error                        // receives why the connection must be made again
	used         atomic.Bool                       // a request was answered
	unauthorized atomic.Bool                       // the server required authorization while it was being connected
	sent         atomic.Pointer[mcproots.Snapshot] // the roots last sent to the server, or nil
	tools        listCache[Tool]
	resources    listCache[acpmcp.Resource]
	prompts      listCache[prompt]
	calls        activeCalls
}

// newConnection returns a connection that is not open.
func (s *server) newConnection() *connection {
	c := &connection{
		server: s, capabilities: &mcp.ClientCapabilities{},
		readiness: newReadiness(s.config.Policy, s.set.options.limits.SettleMax),
		ended:     make(chan struct{}), over: make(chan error, 1),
	}
	o := &mcp.ClientOptions{
		Logger:       s.log,
		Capabilities: c.capabilities,
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			c.tools.invalidate()
		},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
			c.resources.invalidate()
		},
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) {
			c.prompts.invalidate()
		},
		LoggingMessageHandler:       c.logMessage,
		ProgressNotificationHandler: c.calls.progress,
		MultiRoundTrip:              &mcp.MultiRoundTripOptions{Disabled: true},
	}
	if s.config.declaresRoots() {
		c.capabilities.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	}
	c.offerElicitation(o)
	c.offerSampling(o)
	us := &mcp.Implementation{Name: s.set.options.Name, Version: s.set.options.Version}
	c.client = mcp.NewClient(us, o)
	c.client.AddReceivingMiddleware(c.receive)
	c.client.AddSendingMiddleware(c.send)
	return c
}

// connect starts a stdio server or connects to another. ctx bounds only that, not the connection.
func (s *server) connect(ctx context.Context, revision string) (*connection, error) {
	c := s.newConnection()
	var err error
	if c.link, err = c.open(ctx); err != nil {
		return nil, err
	}
	// When Connect gives up, it waits for what the server has asked. That ends with the link.
	connected := context.AfterFunc(ctx, c.link.stop)
	session, err := c.client.Connect(ctx, c.link,
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if !connected() && err == nil {
		_ = session.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if c.unauthorized.Load() {
			err = errNeedsAuthorization
		}
		c.link.stop()
		return nil, c.link.end(err)
	}
	c.session.Store(session)
	go func() {
		_ = session.Wait()
		c.endCalls()
		close(c.ended)
	}()
	if c.unauthorized.Load() { // it rejected server/discover, so the SDK treated it as a legacy server
		_ = c.close(nil)
		return nil, errNeedsAuthorization
	}
	return c, nil
}

// link is a transport to a server. The server ends with it if it is a process, and goes on if it is
// reached over HTTP.
type link interface {
	mcp.Transport
	// failed is called with what the server says of a call that has failed, or of its end.
	failed(message string)
	// cause returns the error with which the link has ended, or nil.
	cause() error
	// stop ends a process and waits for it. Requests over HTTP have a moment to end.
	stop()
	// end ends the link after stop, and waits for its goroutines. It returns the most helpful error
	// for the end, given that of the SDK.
	end(err error) error
}

// open returns an open link: it starts the process, or prepares a transport over HTTP.
func (c *connection) open(ctx context.Context) (link, error) {
	s := c.server
	if s.config.isProcess() {
		return s.startProcess(ctx)
	}
	var user credentials
	if s.authorizer != nil {
		user = credentials{s.authorizer.token, c.authorize}
	}
	return newHTTPTransport(s.config, s.set.options.limits, s.log, user, c.retire)
}

// modern reports whether the server speaks revision 2026-07-28 or later, in which it asks for roots
// in results and cannot be notified of changes.
func (c *connection) modern() bool {
	session := c.session.Load()
	return session != nil && mcproots.IsModern(session.InitializeResult().ProtocolVersion)
}

// offered returns the capabilities of the server.
func (c *connection) offered() mcp.ServerCapabilities {
	if o := c.session.Load().InitializeResult().Capabilities; o != nil {
		return *o
	}
	return mcp.ServerCapabilities{}
}

// begin is called once the server is connected. It starts waiting until the server has read its
// first roots.
func (c *connection) begin() {
	if c.isTold() {
		c.readiness.begin(false)
	}
	switch {
	case c.offered().Logging == nil:
	case c.modern():
		c.server.warn(deprecatedLogging)
	default:
		c.server.set.spawn(c.enableLogMessages)
	}
}

// retire makes the server connect again, because of err. The calls that are in progress may still
// be answered.
func (c *connection) retire(err error) {
	c.withdraw()
	select {
	case c.over <- err:
	default:
	}
}

// withdraw lets no more calls begin: they wait for the next connection. The returned channel is
// closed when those in progress have ended.
func (c *connection) withdraw() <-chan struct{} {
	ended, s := c.calls.retire(), c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase.connection == c {
		s.enterLocked(restarting())
	}
	return ended
}

// endCalls withdraws the connection and cancels its calls, because it has ended.
func (c *connection) endCalls() {
	c.withdraw()
	c.calls.cancel()
}

// isOwn reports whether the server is a part of this program, such as acp-agent mcp, which
// certainly follows the protocol.
func (c *connection) isOwn() bool {
	info := c.session.Load().InitializeResult().ServerInfo
	return info != nil && info.Name == c.server.set.options.Name
}

// isTold reports whether the server is told that the roots have changed.
func (c *connection) isTold() bool { return c.capabilities.RootsV2 != nil && !c.modern() }

// rootsChanged tells the server of new roots. The server is not ready until it has had time to read
// them.
func (c *connection) rootsChanged() {
	if c.isTold() {
		c.readiness.begin(true)
		c.server.set.spawn(c.announceRoots)
	}
}

// announceRoots sends a legacy server notifications/roots/list_changed, and waits a bounded time
// until the server has read it.
func (c *connection) announceRoots() {
	if !c.isTold() {
		return
	}
	done := make(chan struct{})
	c.server.set.running.Go(func() {
		defer close(done)
		// The SDK notifies the server whenever a root is added. This root is never listed.
		c.client.AddRoots(&mcp.Root{URI: "file:///"})
	})
	select {
	case <-done:
	case <-c.ended:
	case <-time.After(notifyTimeout):
		c.server.log.Warn("MCP server is not reading the notification that the roots have changed",
			"waited", notifyTimeout)
	}
}

// enableLogMessages asks a legacy server for its log messages, because some servers send them only
// on request.
func (c *connection) enableLogMessages() {
	ctx, cancel := context.WithTimeout(c.server.ctx, notifyTimeout)
	defer cancel()
	err := c.session.Load().SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"})
	if err != nil {
		c.server.log.Debug("MCP server rejected the logging level", "error", err)
	}
}

// logMessage writes a log message of the server to our log, at level debug: its stderr has what
// matters.
func (c *connection) logMessage(_ context.Context, r *mcp.LoggingMessageRequest) {
	p := r.Params
	if p == nil {
		return
	}
	message := text.Truncate(c.server.redactor.Text(fmt.Sprint(p.Data)), maxLogText)
	c.server.log.Debug("MCP server: "+message, "level", text.Truncate(string(p.Level), 20),
		"logger", text.Truncate(p.Logger, 100))
	if c.modern() {
		c.server.warn(deprecatedLogging)
	}
}

// close ends the connection, and the process group of the server, and waits for them. It returns
// the most helpful error for the end, given that of the SDK.
func (c *connection) close(err error) error {
	c.endCalls()
	c.link.stop()
	_ = c.session.Load().Close()
	<-c.ended
	return c.link.end(err)
}

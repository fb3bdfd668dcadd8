package mcpclient

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577)

import (
	"cmp"
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
	server  *server
	folders folders // of the session when the attempt to connect was begun

	// ctx ends when no more calls begin. Then run closes the connection. end says why.
	ctx context.Context
	end context.CancelCauseFunc

	client       *mcp.Client
	capabilities *mcp.ClientCapabilities // of the client
	calls        activeCalls
	readiness    *readiness
	sent         atomic.Pointer[mcproots.Snapshot] // the roots last sent to the server, or nil
	tools        listCache[Tool]
	resources    listCache[acpmcp.Resource]
	prompts      listCache[prompt]

	signIn    atomic.Pointer[signInError] // that is needed to connect, or nil
	link      link
	session   *mcp.ClientSession // set before connected
	connected atomic.Bool
	used      atomic.Bool // a request was answered
}

// newConnection returns a connection that is not open.
func (s *server) newConnection(in folders) *connection {
	c := &connection{
		server: s, folders: in, capabilities: &mcp.ClientCapabilities{},
		readiness: newReadiness(s.config.Policy, s.set.options.limits.SettleMax),
	}
	c.tools.kind, c.resources.kind, c.prompts.kind = "tools", "resources", "prompts"
	c.ctx, c.end = context.WithCancelCause(s.ctx)
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
func (s *server) connect(ctx context.Context, in folders, revision string) (*connection, error) {
	c := s.newConnection(in)
	var err error
	if c.link, err = c.open(ctx); err != nil {
		c.end(err)
		return nil, err
	}
	// When Connect gives up, it waits for what the server has asked. That ends with the link.
	inTime := context.AfterFunc(ctx, c.link.stop)
	c.session, err = c.client.Connect(ctx, c.link,
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if !inTime() {
		err = context.Cause(ctx)
	} else if needed := c.signIn.Load(); needed != nil {
		err = needed // perhaps only for server/discover, so that the SDK went on
	}
	if err != nil {
		c.end(err)
		return nil, c.close(err)
	}
	c.connected.Store(true)
	go func() { c.end(cmp.Or(c.session.Wait(), errClosedByServer)) }()
	return c, nil
}

// link is a transport to a server. The server ends with it if it is a process, and goes on if it is
// reached over HTTP.
type link interface {
	mcp.Transport
	// explainDenial tells the user how to permit what a sandbox has denied the server, if that is
	// the reason for message, which the server gives for its end or for the failure of a call.
	explainDenial(message string)
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
	b := newInbox(s.set.options.limits, s.log, s.redactor.Scrubber)
	if s.config.isProcess() {
		return s.startProcess(ctx, c.folders, b)
	}
	var user credentials
	if s.authorizer != nil {
		user = credentials{s.authorizer.token, c.authorize}
	}
	return newHTTPTransport(s.config, b, user, c.end)
}

// modern reports whether the server speaks revision 2026-07-28 or later, in which it asks for roots
// in results and cannot be notified of changes.
func (c *connection) modern() bool {
	return c.connected.Load() && mcproots.IsModern(c.session.InitializeResult().ProtocolVersion)
}

// offered returns the capabilities of the server.
func (c *connection) offered() *mcp.ServerCapabilities {
	return cmp.Or(c.session.InitializeResult().Capabilities, &mcp.ServerCapabilities{})
}

// begin is called once the server is connected. It starts waiting until the server has read its
// first roots.
func (c *connection) begin() {
	if c.isTold() {
		c.readiness.begin()
	}
	switch {
	case c.offered().Logging == nil:
	case c.modern():
		c.server.warn(deprecatedLogging)
	default:
		c.server.set.spawn(c.enableLogMessages)
	}
}

// outdatedError ends a connection that cannot be kept with the session's new folders.
type outdatedError struct{ lost []mcproots.Root } // roots that the server was sent

func (e *outdatedError) Error() string { return errReconnect.Error() }

func (e *outdatedError) Unwrap() error { return errReconnect }

// endIfOutdated ends the connection if it cannot be kept with the session's folders: the process
// was started with others, or the server was sent roots that the session no longer has. It reports
// whether that is so.
func (c *connection) endIfOutdated() bool {
	config, now := c.server.config, c.server.set.currentFolders()
	var lost []mcproots.Root
	if sent := c.sent.Load(); sent != nil {
		lost = sent.Missing(now.roots)
	}
	outdated := config.startsWithRoots() && c.folders.replaced != now.replaced ||
		len(lost) > 0 && !config.Policy.KeepOnShrink
	if outdated {
		c.end(&outdatedError{lost})
	}
	return outdated
}

// isOwn reports whether the server is a part of this program, such as acp-agent mcp, which
// certainly follows the protocol.
func (c *connection) isOwn() bool {
	info := c.session.InitializeResult().ServerInfo
	return info != nil && info.Name == c.server.set.options.Name
}

// isTold reports whether the server is told that the roots have changed.
func (c *connection) isTold() bool { return c.capabilities.RootsV2 != nil && !c.modern() }

// rootsChanged tells the server of new roots. The server is not ready until it has had time to read
// them.
func (c *connection) rootsChanged() {
	if c.isTold() {
		c.readiness.rootsChanged()
		c.readiness.begin()
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
	err := c.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"})
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

// close closes a connection that takes no more calls or could not be made, with the process group
// of the server, and waits for them. It returns the most helpful error for the end, given why it
// ended.
func (c *connection) close(why error) error {
	c.calls.cancel()
	c.link.stop()
	if c.session != nil {
		_ = c.session.Close()
	}
	return c.link.end(why)
}

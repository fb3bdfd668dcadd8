package mcpclient

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577)

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// connection is one connection to a server, with a client of the MCP SDK. A reconnected server has
// a new one.
type connection struct {
	server       *server
	client       *mcp.Client
	capabilities *mcp.ClientCapabilities           // of the client
	session      atomic.Pointer[mcp.ClientSession] // nil before it is connected
	process      *process.Process                  // nil for http
	sandbox      sandbox.Policy                    // of the process
	stdio        *stdioTransport                   // nil for http
	http         *httpTransport                    // nil for stdio
	cancel       context.CancelCauseFunc
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
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c.cancel = cancel
	transport, err := c.open(ctx, life)
	if err == nil {
		// Some of the SDK's transports end with the context passed to Connect, so ctx cannot be
		// passed.
		connected := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
		var session *mcp.ClientSession
		session, err = c.client.Connect(life, transport,
			&mcp.ClientSessionOptions{ProtocolVersion: revision})
		connected()
		if err == nil {
			c.session.Store(session)
		}
	}
	if err != nil {
		if life.Err() != nil {
			err = context.Cause(life)
		} else if c.unauthorized.Load() {
			err = errNeedsAuthorization
		}
		return nil, c.abandon(err)
	}
	if c.http != nil {
		c.http.connected.Store(true)
	}
	go func() {
		_ = c.session.Load().Wait()
		c.calls.close()
		close(c.ended)
	}()
	if c.unauthorized.Load() { // it rejected server/discover, so the SDK treated it as a legacy server
		c.close()
		return nil, errNeedsAuthorization
	}
	return c, nil
}

// open starts the process, if any, and returns the transport.
func (c *connection) open(ctx, life context.Context) (mcp.Transport, error) {
	s := c.server
	if s.config.Transport != acpmcp.Stdio {
		return c.openHTTP(life)
	}
	command, err := s.command()
	if err != nil {
		return nil, err
	}
	c.sandbox = command.Sandbox
	c.process, err = process.Start(ctx, command,
		process.Options{Logger: s.log, Secrets: s.redactor.Scrubber, Refused: c.explainRefusal})
	if err != nil {
		return nil, err
	}
	c.stdio = newStdioTransport(c.process.Stdout(), c.process.Stdin(), s.set.options.limits, s.log)
	c.stdio.secrets = s.redactor.Scrubber
	return c.stdio, nil
}

// openHTTP returns the transport of a server that is reached over HTTP.
func (c *connection) openHTTP(life context.Context) (mcp.Transport, error) {
	s := c.server
	t, err := newHTTPTransport(life, s.config, s.set.options.limits, s.log)
	if err != nil {
		return nil, err
	}
	c.http, t.lost = t, c.retire
	t.fail = func(err error) {
		c.cancel(err)
		c.disconnected(err)
	}
	if s.authorizer != nil {
		t.token, t.authorize = s.authorizer.token, c.authorize
	}
	return t, nil
}

// command returns the command that starts the server, in its sandbox.
func (s *server) command() (command process.Command, err error) {
	s.set.mu.Lock()
	ws, roots := s.set.ws, s.set.roots
	s.set.mu.Unlock()
	args, env, err := expandTemplates(s.config, roots)
	if err != nil {
		return command, err
	}
	dir := cmp.Or(s.config.Dir, ws.Roots().Cwd().String())
	if err := ws.HandOverDir(dir); err != nil {
		return command, fmt.Errorf("%w: %w", errDirectory, err)
	}
	command = process.Command{Path: s.config.Command, Args: args, Dir: dir, Name: s.config.Name}
	command.Base = process.EnvironmentWithout(s.set.options.Withheld)
	switch {
	case s.set.options.Environment != nil:
		command.Base = s.set.options.Environment
	case s.config.File != "":
		command.Base = BasicEnvironment()
	}
	for _, p := range env {
		command.Env = append(command.Env, p.Name+"="+p.Value)
	}
	if command, err = command.Restrict(s.config.Policy.Sandbox, sandboxRoots(roots)); err != nil {
		return command, err
	}
	if err := s.config.Policy.Sandbox.Unprotected(); err != nil {
		s.tellOnce(fmt.Sprintf("MCP server %s runs without a sandbox and can write wherever you "+
			"can: %v.", text.Name(s.config.Name), err))
	}
	return command, nil
}

// sandboxRoots returns the roots that exist, for a server in the sandbox.
func sandboxRoots(roots mcproots.Snapshot) (all []process.Root) {
	for _, root := range roots.Existing().All() {
		for _, dir := range root.Dirs {
			all = append(all, process.Root{Path: dir.String(), Real: root.Real.String(),
				ReadOnly: root.Grant == workspace.ReadOnly})
		}
	}
	return all
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

// isReady reports whether calls can be sent without waiting.
func (c *connection) isReady() bool {
	return !c.calls.isClosed() && c.readiness.left() <= 0
}

// retire makes the server connect again, because of err. The calls that are in progress may still
// be answered.
func (c *connection) retire(err error) {
	c.calls.retire()
	select {
	case c.over <- err:
	default:
	}
}

// disconnected is called when the connection cannot be used any longer, because of err. The end of
// a process is noticed by itself, and then it is known how it ended.
func (c *connection) disconnected(err error) {
	c.calls.close()
	if c.http != nil {
		c.retire(err)
	}
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

// close ends the connection and its process group and waits for them.
func (c *connection) close() {
	c.calls.close()
	if c.process != nil {
		c.stopProcess()
	}
	late := time.AfterFunc(notifyTimeout, func() { c.cancel(errStopped) })
	_ = c.session.Load().Close()
	late.Stop()
	c.cancel(errStopped)
	<-c.ended
	if c.http != nil {
		c.http.wait()
	}
}

// stopProcess ends the process group, kills it if it does not end in time, and waits for it.
func (c *connection) stopProcess() {
	ctx, cancel := c.server.set.stopContext()
	defer cancel()
	_ = c.stdio.Close()
	if err := c.process.Stop(ctx); err != nil {
		c.server.log.Error("MCP server does not stop", "error", err)
	}
	c.stdio.writer.Wait()
}

// abandon undoes a failed connect and returns why it failed, given the error of the SDK.
func (c *connection) abandon(err error) error {
	defer c.cancel(errStopped)
	if c.http != nil {
		c.cancel(errStopped)
		c.http.wait()
	}
	return c.endError(err)
}

// limitExceeded returns the error for the limit that the server exceeded, nil if the connection has
// not ended because of one.
func (c *connection) limitExceeded() error {
	var cause error
	if c.stdio != nil {
		cause = c.stdio.writer.Err()
	} else {
		cause = context.Cause(c.http.ctx)
	}
	if exceeded, ok := errors.AsType[*limitError](cause); ok {
		return exceeded
	}
	return nil
}

// explainDenial tells the user, once for each path, which setting would permit an access that the
// sandbox has denied the server, if that is known.
func (c *connection) explainDenial(message string) {
	if c.process == nil {
		return
	}
	s := c.server
	explanation, _ := process.ExplainDenial(c.sandbox, message,
		"MCP server "+text.Name(s.config.Name), text.Code("mcpServers."+s.config.Name))
	if explanation != "" {
		s.tellOnce(explanation)
	}
}

// explainRefusal tells the user, once for each host, which setting would let the server connect.
func (c *connection) explainRefusal(r hosts.Refusal) {
	name := c.server.config.Name
	c.server.tellOnce(process.ExplainRefusal(r, "MCP server "+text.Name(name),
		text.Code("mcpServers."+name)))
}

// endError returns the most helpful error for the end of the connection, given that of the SDK. It
// stops the process, if there is one, to learn how it ended.
func (c *connection) endError(sdkErr error) error {
	if c.process == nil {
		return sdkErr
	}
	err := c.stdio.writer.Err()
	c.stopProcess()
	if errors.As(err, new(*limitError)) {
		return err
	}
	serverClosed := errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, os.ErrClosed)
	if errors.Is(err, errClosedByUs) || !serverClosed {
		return sdkErr
	}
	if err := c.process.Wait(context.Background()); err != nil {
		c.explainDenial(err.Error())
		exit, ok := errors.AsType[*process.ExitError](err)
		if ok && len(exit.Stderr) == 0 {
			return fmt.Errorf("%w; it wrote no error: run its command in a terminal to see why",
				err)
		}
		return err
	}
	return fmt.Errorf("it exited with status 0; its stderr is in the log at level info, "+
		"under child=%s", c.process.Name())
}

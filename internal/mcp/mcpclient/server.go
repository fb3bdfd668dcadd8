package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
)

// server is one server of a session. While it is needed, run connects it and reconnects it when it
// fails.
type server struct {
	set      *Set
	config   Config
	prefix   string // of the names of its tools
	log      *slog.Logger
	redactor redactor
	ctx      context.Context // ends with the server
	stop     context.CancelCauseFunc

	questions chan struct{}        // holds one value while the server has a question
	samples   *rate.Limiter        // of its requests to the model
	restarts  chan []mcproots.Root // tells run to reconnect; has the roots that were lost

	authorizer *authorizer // nil if the user cannot sign in to the server

	// Used by run only.
	revision string // to connect with: "" before it is known that there is only the legacy one
	signIns  int    // that were awaited since it was last connected

	mu        sync.Mutex
	phase     phase
	changed   chan struct{} // closed and replaced when there is something new to wait for
	restarted int           // how often it was restarted after a failure
	warnings  []string      // deprecations, which are logged once
	told      []string      // what the user was told once
}

func (s *Set) newServer(c Config, prefix string) *server {
	r := redactor{c.secrets()}
	ctx, stop := context.WithCancelCause(s.ctx)
	one := &server{
		set: s, config: c, prefix: prefix, ctx: ctx, stop: stop,
		redactor: r, log: r.logger(s.options.Logger.With("server", c.Name)),
		questions: make(chan struct{}, 1), restarts: make(chan []mcproots.Root, 1),
		samples: rate.NewLimiter(rate.Every(time.Minute/samplesPerMinute), samplesPerMinute),
		phase:   phase{state: acpmcp.Idle}, changed: make(chan struct{}),
	}
	if c.mayAuthorize() {
		one.authorizer = &authorizer{server: one}
	}
	return one
}

func (s *server) id() ServerID { return ServerID{s.config.Name, s.prefix} }

// ready waits until the server takes calls, starting it if necessary, and returns its connection.
func (s *server) ready(ctx context.Context) (*connection, error) {
	wait := s.set.options.Wait
	ctx, cancel := context.WithTimeoutCause(ctx, wait,
		timeoutError(s.config.Name, "become ready", wait))
	defer cancel()
	s.ensureRunning()
	for {
		s.mu.Lock()
		now, changed := s.phase, s.changed
		s.mu.Unlock()
		if now.refuses {
			return nil, now.failure
		}
		var settled <-chan time.Time
		if now.connection != nil {
			left := now.connection.readiness.left()
			if left <= 0 {
				return now.connection, nil
			}
			settled = time.After(left)
		}
		select {
		case <-settled:
		case <-changed:
		case <-ctx.Done():
			return nil, now.explain(context.Cause(ctx))
		}
	}
}

// announceRoots tells the server that the roots have changed, if it is connected.
func (s *server) announceRoots() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.phase.connection; c != nil {
		s.set.spawn(c.announceRoots)
	}
}

// ensureRunning starts the server unless it is running or has just failed.
func (s *server) ensureRunning() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase.isRunning() || s.ctx.Err() != nil || time.Now().Before(s.phase.retryAt) {
		return
	}
	select { // a restart requested before the end of the server is no longer needed
	case <-s.restarts:
	default:
	}
	if s.set.spawn(s.run) {
		s.enterLocked(starting("other servers are being started first"))
	}
}

// enterLocked begins a phase, unless the server was stopped, and wakes those who wait for a change.
// While the server is starting, the failure of the last attempt remains known.
func (s *server) enterLocked(p phase) {
	switch {
	case s.phase.state == acpmcp.Stopped:
		return
	case p.state == acpmcp.Starting:
		p.failure = s.phase.failure
	case p.state == acpmcp.Waiting:
		s.restarted++
	}
	s.phase = p
	s.wakeLocked()
}

// enter is enterLocked for a caller that does not hold mu.
func (s *server) enter(p phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enterLocked(p)
}

// wakeLocked wakes those who wait for a change.
func (s *server) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// run keeps the server connected until it is stopped or has failed too often.
func (s *server) run() {
	var next step
	s.signIns = 0 // the user may sign in now, however often that failed before
	for {
		end := s.attempt()
		if s.ctx.Err() != nil {
			return
		}
		next = s.set.options.limits.next(next.failures, end)
		if next.failures == 0 {
			continue
		}
		err := serverError(s.config.Name, s.redactor.err(end.err))
		if next.giveUp {
			s.log.Error("MCP server failed", "error", err)
			s.enter(phase{state: acpmcp.Failed, failure: err, refuses: true,
				retryAt: time.Now().Add(next.wait)})
			return
		}
		s.log.Warn("restarting an MCP server that failed", "error", err, "in", next.wait)
		s.enter(phase{state: acpmcp.Waiting, failure: err, refuses: next.failures > 1})
		select {
		case <-time.After(next.wait):
		case <-s.restarts:
		case <-s.ctx.Done():
		}
	}
}

// attempt connects the server and serves the connection until it ends. If the user must sign in
// first, it only waits for that.
func (s *server) attempt() ending {
	c, err := s.start()
	switch {
	case errors.Is(err, errNeedsAuthorization):
		return ending{err: s.awaitAuthorization()}
	case err != nil:
		return ending{err: err}
	}
	s.signIns = 0
	began := time.Now()
	err = s.serve(c)
	return ending{err, !s.config.isProcess() && c.used.Load(), time.Since(began)}
}

// start connects the server once few enough others are starting.
func (s *server) start() (*connection, error) {
	select {
	case s.set.starting <- struct{}{}:
		defer func() { <-s.set.starting }()
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	s.enter(starting("it has not answered yet"))
	timeout := s.set.options.limits.StartTimeout
	ctx, cancel := context.WithTimeoutCause(s.ctx, timeout,
		timeoutError(s.config.Name, "answered initialize", timeout))
	defer cancel()
	c, err := s.connect(ctx, s.revision)
	if err != nil && s.revision == "" && s.config.isProcess() && !isPermanent(err) &&
		ctx.Err() == nil {
		// Some servers exit on a request that they do not know.
		s.log.Debug("could not connect to an MCP server; retrying with the legacy protocol",
			"error", err)
		c, err = s.connect(ctx, mcproots.Legacy)
	}
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if ok && refused.Code == jsonrpc.CodeMethodNotFound {
		if err = errNotMCP; !s.config.isProcess() {
			err = errNotMCPURL
		}
	}
	return c, err
}

// check fails if the user must be asked before the server may be started.
func (s *server) check() error {
	if s.config.Check == nil {
		return nil
	}
	s.set.mu.Lock()
	ws := s.set.ws
	s.set.mu.Unlock()
	if err := s.config.Check(ws); err != nil {
		return fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	return nil
}

// serve offers a connection for calls until it ends, and closes it. It returns why it ended.
func (s *server) serve(c *connection) error {
	c.begin()
	s.mu.Lock()
	select {
	case lost := <-s.restarts: // requested while it started
		s.mu.Unlock()
		return s.restart(c, lost)
	default:
	}
	if !c.calls.isRetired() { // it may have ended already
		s.enterLocked(phase{state: acpmcp.Ready, connection: c})
	}
	s.mu.Unlock()
	if !c.modern() {
		s.revision = mcproots.Legacy
	}
	if s.hasOldRoots(c) {
		c.rootsChanged()
	}
	s.log.Info("MCP server connected", "revision", c.session.Load().InitializeResult().ProtocolVersion)
	select {
	case <-c.ended:
		err := cmp.Or(c.session.Load().Wait(), errors.New("it closed the connection"))
		return c.close(err)
	case err := <-c.over:
		s.log.Info("connecting to an MCP server again", "error", err)
		s.closeLater(c)
		return err
	case lost := <-s.restarts:
		return s.restart(c, lost)
	case <-s.ctx.Done():
		return c.close(context.Cause(s.ctx))
	}
}

// hasOldRoots reports whether the server has fetched roots during its start that have changed
// since.
func (s *server) hasOldRoots(c *connection) bool {
	sent := c.sent.Load()
	now, err := s.set.currentRoots()
	return sent != nil && err == nil && !sent.Equal(now)
}

// restart ends a connection in order to reconnect to the server. It tells the server and the user
// if the reason is that the server knows roots that were lost.
func (s *server) restart(c *connection, lost []mcproots.Root) error {
	if len(lost) > 0 && c.sent.Load() != nil {
		c.announceRoots()
		s.log.Info("restarting MCP server: it still has roots that were removed from the session",
			"roots", len(lost))
		s.set.showMessage("Restarting MCP server " + text.Name(s.config.Name) +
			": it still has " + rootPaths(lost) + ", which the session no longer has.")
	}
	_ = c.close(nil)
	return errReconnect
}

// closeLater closes a connection that was withdrawn when its calls have ended.
func (s *server) closeLater(c *connection) {
	closing := func() {
		select {
		case <-c.withdraw():
		case <-c.ended:
		case <-s.ctx.Done():
		}
		_ = c.close(nil)
	}
	if !s.set.spawn(closing) {
		closing()
	}
}

// rootsChanged tells the server about new roots, or reconnects to it.
func (s *server) rootsChanged(lost []mcproots.Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.phase.isRunning() || s.phase.signIn != nil { // it knows no roots
		return
	}
	c := s.phase.connection
	if s.mustRestart(c, lost) {
		s.enterLocked(restarting())
		select {
		case <-s.restarts:
		default:
		}
		s.restarts <- lost
		return
	}
	if c != nil {
		c.rootsChanged()
	}
}

// mustRestart reports whether a connection cannot be kept with new roots. c is nil while the server
// is connecting; the roots that it knows are then unknown.
func (s *server) mustRestart(c *connection, lost []mcproots.Root) bool {
	switch {
	case s.config.isProcess() &&
		(s.config.Policy.Templates || s.config.Policy.Sandbox.Mode != sandbox.Off):
		return true
	case len(lost) == 0 || s.config.Policy.KeepOnShrink || !s.config.declaresRoots():
		return false
	case c == nil:
		return true
	default:
		return c.sent.Load() != nil
	}
}

// Warnings about features that MCP 2026-07-28 deprecates.
const (
	deprecatedRoots = "this server asks for roots, which MCP deprecates since " +
		"2026-07-28 and may drop after 2027-07-28; templates such as ${roots} in its arguments " +
		"or environment can replace them"
	deprecatedSampling = "this server asks the session's model, which MCP deprecates " +
		"since 2026-07-28 and may drop after 2027-07-28; servers should call a model themselves"
	deprecatedLogging = "this server sends log messages over MCP, which are " +
		"deprecated since 2026-07-28; its stderr is logged anyway"
)

// tellOnce shows the user a message, once per server.
func (s *server) tellOnce(message string) {
	if s.addOnce(&s.told, message) {
		s.set.showMessage(message)
	}
}

// warn logs a deprecation, once per server.
func (s *server) warn(deprecation string) {
	if s.addOnce(&s.warnings, deprecation) {
		s.log.Warn(deprecation)
	}
}

// addOnce appends value to a list of the server, and reports whether it was not in it.
func (s *server) addOnce(list *[]string, value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(*list, value) {
		return false
	}
	*list = append(*list, value)
	return true
}

// maxFailure is the maximum length in bytes of a failure in the description of a server that is
// being started again.
const maxFailure = 1000

// status returns the server's status.
func (s *server) status() acpmcp.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := acpmcp.Status{
		Name: s.config.Name, Prefix: s.prefix, Transport: s.config.Transport, File: s.config.File,
		Restarts: s.restarted, RootsDeclared: s.config.declaresRoots(),
		Warnings: slices.Clone(s.warnings),
	}
	status.State, status.Waiting = s.phase.describe()
	if one := s.phase.signIn; one != nil && one.page.Load() != nil {
		status.Waiting += ": " + OpenPage(one.page.Load().String())
	}
	switch {
	case status.State == acpmcp.Waiting || status.State == acpmcp.Failed:
		status.Err = s.phase.failure
	case status.State == acpmcp.Starting && s.phase.failure != nil:
		status.Waiting += "; the last attempt failed: " +
			text.Code(text.Truncate(s.phase.failure.Error(), maxFailure))
	}
	c := s.phase.connection
	if c == nil {
		return status
	}
	r := c.session.Load().InitializeResult()
	status.Revision, status.Instructions = r.ProtocolVersion, r.Instructions
	for _, p := range c.prompts.latest() {
		status.Prompts = append(status.Prompts, p.Prompt)
	}
	if i := r.ServerInfo; i != nil {
		status.Product = text.Name(i.Name) + " " + text.Name(i.Version)
	}
	if sent := c.sent.Load(); sent != nil {
		status.SentRoots = sent.URIs()
	}
	return status
}

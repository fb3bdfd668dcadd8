package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
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

	questions chan struct{} // holds one value while the server has a question
	samples   *rate.Limiter // of its requests to the model

	authorizer *authorizer // nil if the user cannot sign in to the server

	// revision is the one to connect with, "" before it is known that there is only the legacy one.
	// Only run uses it.
	revision string

	mu        sync.Mutex
	phase     phase
	failure   error         // why the last attempt failed, nil once the server was connected
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
		questions: make(chan struct{}, 1),
		samples:   rate.NewLimiter(rate.Every(time.Minute/samplesPerMinute), samplesPerMinute),
		phase:     idle{}, changed: make(chan struct{}),
	}
	if c.mayAuthorize() {
		one.authorizer = &authorizer{server: one}
		one.authorizer.network.lookup = net.DefaultResolver.LookupNetIP
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
		now, failure, changed := s.nowLocked(), s.failure, s.changed
		s.mu.Unlock()
		var settled <-chan time.Time
		switch p := now.(type) {
		case serving:
			left := p.readiness.left()
			if left <= 0 {
				return p.connection, nil
			}
			settled = time.After(left)
		case waiting:
			if p.refuses {
				return nil, failure
			}
		case failed:
			return nil, failure
		case stopped:
			return nil, acpmcp.ErrClosed
		}
		select {
		case <-settled:
		case <-changed:
		case <-s.ctx.Done():
		case <-ctx.Done():
			return nil, explain(context.Cause(ctx), now, failure)
		}
	}
}

// explain adds to err what was waited for, and why the last attempt failed.
func explain(err error, now phase, failure error) error {
	if _, awaited := now.describe(); awaited != "" {
		err = fmt.Errorf("%w: %s", err, awaited)
	}
	if failure != nil {
		err = fmt.Errorf("%w; the last attempt failed: %w", err, failure)
	}
	return err
}

// announceRoots tells the server that the roots have changed, if it is connected.
func (s *server) announceRoots() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.nowLocked().(serving); ok {
		s.set.spawn(c.announceRoots)
	}
}

// ensureRunning starts the server unless it is running or has just failed.
func (s *server) ensureRunning() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p := s.phase.(type) {
	case idle:
	case failed:
		if time.Now().Before(p.retryAt) {
			return
		}
	default:
		return
	}
	if s.ctx.Err() == nil && s.set.spawn(s.run) {
		s.enterLocked(starting("other servers are being started first"))
	}
}

// nowLocked returns the phase as it is for others than run, which may not have seen yet that the
// server was stopped or its connection has ended.
func (s *server) nowLocked() phase {
	switch c, ok := s.phase.(serving); {
	case s.ctx.Err() != nil:
		return stopped{}
	case ok && c.ctx.Err() != nil:
		return restarting
	}
	return s.phase
}

// enterLocked begins a phase and wakes those who wait for a change.
func (s *server) enterLocked(p phase) {
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

// run keeps the server connected until it is stopped or has failed too often. It alone begins the
// phases and ends the connections. Others ask for that with the context of the server or of the
// connection, whose cause says why.
func (s *server) run() {
	var next step
	signIns := 0 // that were awaited since the server was last connected
	for {
		var replaced <-chan struct{}
		if s.config.startsWithRoots() {
			replaced = s.set.currentFolders().replaced
		}
		end := s.attempt()
		if needed, ok := errors.AsType[*signInError](end.err); ok {
			end.err = s.awaitAuthorization(needed.obtaining, signIns)
			signIns++
		} else if end.age > 0 {
			signIns = 0
		}
		if s.ctx.Err() != nil {
			return
		}
		next = s.set.options.limits.next(next.failures, end)
		if next.failures == 0 {
			continue
		}
		s.enterAfter(end.err, next)
		if next.giveUp {
			return
		}
		select {
		case <-time.After(next.wait):
		case <-replaced: // with other roots it may not fail
		case <-s.ctx.Done():
		}
	}
}

// enterAfter begins the phase after an attempt that failed.
func (s *server) enterAfter(failure error, next step) {
	failure = serverError(s.config.Name, s.redactor.err(failure))
	if next.giveUp {
		s.log.Error("MCP server failed", "error", failure)
	} else {
		s.log.Warn("restarting an MCP server that failed", "error", failure, "in", next.wait)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = failure
	if next.giveUp {
		s.enterLocked(failed{retryAt: time.Now().Add(next.wait)})
		return
	}
	s.restarted++
	s.enterLocked(waiting{refuses: next.failures > 1})
}

// attempt connects the server and serves the connection until it ends.
func (s *server) attempt() ending {
	c, err := s.start()
	if err != nil {
		return ending{err: err}
	}
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
	in := s.set.currentFolders()
	if s.config.Check != nil {
		switch err := s.config.Check(in.ws); {
		case err != nil && in.ws != s.set.currentFolders().ws:
			return nil, errReconnect // in.ws may be closed
		case err != nil:
			return nil, fmt.Errorf("%w: %w", errNotAllowed, err)
		}
	}
	s.enter(starting("it has not answered yet"))
	timeout := s.set.options.limits.StartTimeout
	ctx, cancel := context.WithTimeoutCause(s.ctx, timeout,
		timeoutError(s.config.Name, "answered initialize", timeout))
	defer cancel()
	c, err := s.connect(ctx, in, s.revision)
	if err != nil && s.revision == "" && s.config.isProcess() && !isPermanent(err) &&
		ctx.Err() == nil {
		// Some servers exit on a request that they do not know.
		s.log.Debug("could not connect to an MCP server; retrying with the legacy protocol",
			"error", err)
		c, err = s.connect(ctx, in, mcproots.Legacy)
	}
	if err != nil && s.config.isProcess() && in.ws != s.set.currentFolders().ws {
		return nil, errReconnect // in.ws may be closed
	}
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if ok && refused.Code == jsonrpc.CodeMethodNotFound {
		if err = errNotMCP; !s.config.isProcess() {
			err = errNotMCPURL
		}
	}
	return c, err
}

// serve offers a connection for calls until it has ended, and closes it. It returns why it ended.
func (s *server) serve(c *connection) error {
	c.begin()
	if !c.modern() {
		s.revision = mcproots.Legacy
	}
	s.mu.Lock()
	c.endIfOutdated()
	s.failure = nil
	s.enterLocked(serving{c})
	s.mu.Unlock()
	sent := c.sent.Load()
	if sent != nil && !sent.Equal(s.set.currentFolders().roots.Existing()) {
		c.rootsChanged() // since the server fetched them during its start
	}
	s.log.Info("MCP server connected", "revision", c.session.InitializeResult().ProtocolVersion)
	<-c.ctx.Done()
	s.enter(restarting)
	why := context.Cause(c.ctx)
	if outdated, ok := errors.AsType[*outdatedError](why); ok {
		s.explainRestart(c, outdated.lost)
		_ = c.close(why)
		return why
	}
	if transportErrorOf(why).fault != none { // the calls in progress may still be answered
		s.log.Info("connecting to an MCP server again", "error", why)
		s.set.running.Go(func() {
			c.calls.wait(s.ctx)
			_ = c.close(why)
		})
		return why
	}
	return c.close(why)
}

// explainRestart tells the server and the user why the server is restarted, if the reason is that
// it was sent roots that were lost.
func (s *server) explainRestart(c *connection, lost []mcproots.Root) {
	if len(lost) == 0 {
		return
	}
	c.announceRoots()
	s.log.Info("restarting MCP server: it still has roots that were removed from the session",
		"roots", len(lost))
	s.set.showMessage("Restarting MCP server " + text.Name(s.config.Name) +
		": it still has " + rootPaths(lost) + ", which the session no longer has.")
}

// foldersChanged makes the server connect again if it cannot be kept with the session's folders. It
// tells other servers of the new roots if they have changed.
func (s *server) foldersChanged(rootsChanged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The next connection begins with the new folders.
	if c, ok := s.nowLocked().(serving); ok && !c.endIfOutdated() && rootsChanged {
		c.rootsChanged()
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
	now := s.nowLocked()
	status.State, status.Waiting = now.describe()
	if one, ok := now.(signingIn); ok && one.page.Load() != nil {
		status.Waiting += ": " + OpenPage(one.page.Load().String())
	}
	switch {
	case status.State == acpmcp.Waiting || status.State == acpmcp.Failed:
		status.Err = s.failure
	case status.State == acpmcp.Starting && s.failure != nil:
		status.Waiting += "; the last attempt failed: " +
			text.Code(text.Truncate(s.failure.Error(), maxFailure))
	}
	c, ok := now.(serving)
	if !ok {
		return status
	}
	r := c.session.InitializeResult()
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

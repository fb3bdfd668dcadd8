package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
)

// child is a process of the agent and the connection to it.
type child struct {
	limits  limits
	log     *slog.Logger
	client  backend.Client
	process *process.Process
	conn    *jsonrpc.Conn
	info    client.Agent // set by initialize
	router  *router
	barrier barrier // for messages that name no session
	outbox  outbox
	secrets *secret.Scrubber // in its stderr and errors
	own     []ownDir         // its directories outside of the sessions' roots
	login   string           // how to log in, in a terminal; empty if unknown

	place place // which sessions it serves

	stop    context.CancelFunc // ends the connection
	ended   atomic.Bool        // the connection has ended
	crashed atomic.Bool        // it ended although we did not call stop
	done    chan struct{}      // closed when the connection and the process have ended
	exit    error              // why they ended, usually an *endedError; set before done is closed

	active atomic.Bool // it was used, or has sent something, since stopIfIdle was called last

	mu       sync.Mutex
	reason   error   // why we ended it, nil if we did not or if it was closed
	refs     int     // the sessions that it serves
	uses     int     // requests to it and from it, and openings of sessions, that are in progress
	loadable bool    // its sessions can be opened in another process
	retired  bool    // no session may use it any more, because it is being ended
	claims   []claim // if its sessions share MCP servers
}

// claim is a session's use of the MCP servers in its working directory.
type claim struct {
	session *session
	alone   bool // they serve its additional directories
}

// claim claims the MCP servers in the working directory of s. It returns false if s or another
// session there needs them alone. The activation that s replaces does not count.
func (c *child) claim(s *session, r openRequest) bool {
	alone := s.relays != nil && (s.roots.Additional().Len() > 0 || r.state.SentTools)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.claims {
		if other.session == s || other.session == r.previous || other.session.roots.Cwd() != s.roots.Cwd() {
			continue
		}
		if alone || other.alone {
			return false
		}
	}
	c.claims = append(c.claims, claim{s, alone})
	return true
}

// unclaim undoes claim, if s has claimed anything.
func (c *child) unclaim(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims = slices.DeleteFunc(c.claims, func(of claim) bool { return of.session == s })
}

// startChild starts the process of a place. onEnd is called once it has ended.
func (p *proxy) startChild(ctx context.Context, at place, onEnd func()) (*child, error) {
	o := p.options
	command := p.command
	command.Args = append(slices.Clone(command.Args), at.args()...)
	command.Env = slices.Concat(command.Env, p.askEnv(), p.tempEnv())
	process, err := process.Start(ctx, command, o.process(p.secrets))
	if err != nil {
		return nil, err
	}
	c := &child{
		limits:  o.limits,
		log:     o.Logger.With("child", process.Name()),
		client:  p.upstream(),
		process: process,
		router:  newRouter(o.limits.maxHeld, o.limits.maxHeldBytes),
		secrets: p.secrets,
		own:     p.ownDirs(command),
		login:   o.Profile.Login,
		place:   at,
		done:    make(chan struct{}),
	}
	c.conn = jsonrpc.NewConn(process.Stdout(), childInput{process}, jsonrpc.HandlerFunc(c.serveMessage), o.connection(c.tap(o.Trace)))
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.outbox.serving = serving
	go c.serve(serving, onEnd)
	return c, nil
}

// tap returns what observes the connection for trace, nil if trace is nil.
func (c *child) tap(trace func(process string, sent bool, line []byte)) jsonrpc.Tap {
	if trace == nil {
		return nil
	}
	name := fmt.Sprintf("%s[%d]", strings.ReplaceAll(c.process.Name(), " ", "_"), c.process.PID())
	return func(d jsonrpc.Direction, line []byte) {
		if clean := c.secrets.JSON(line); clean != nil { // otherwise it is not JSON
			line = clean
		}
		trace(name, d == jsonrpc.Sent, line)
	}
}

// serve runs the connection until it ends, and then ends the process.
func (c *child) serve(ctx context.Context, onEnd func()) {
	defer close(c.done)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer c.stop()
	if c.place != (place{}) {
		watching.Go(func() { c.stopWhenIdle(ctx) })
	}
	err := c.conn.Serve(ctx)
	c.ended.Store(true)
	crashed := ctx.Err() == nil
	c.crashed.Store(crashed)
	c.stop()
	c.outbox.draining.Wait()
	lasting := context.WithoutCancel(ctx)
	_ = c.process.Stdout().Close() // the connection may have closed it
	if c.exit = c.process.Stop(lasting); c.exit != nil {
		c.log.Error("cannot end the agent", "error", c.exit)
	} else {
		c.exit = &endedError{Name: c.process.Name(), Exit: c.process.Wait(lasting), Stderr: c.process.Stderr(), Reason: c.whyKilled()}
	}
	if crashed {
		c.logCrash(err)
	}
	onEnd()
}

// logCrash logs how a child ended that was not asked to, and what it wrote to stderr last. err is
// the connection's error, nil if the child closed it. What a client is told about it is in exit.
func (c *child) logCrash(err error) {
	status := "exit status 0"
	if exit, ok := errors.AsType[*process.ExitError](c.exit); ok {
		status = exit.State
	}
	args := []any{"status", status, "stderr", strings.Join(c.process.Stderr(), "\n")}
	if err != nil {
		args = append(args, "error", err)
	}
	c.log.Warn("the agent ended unexpectedly", args...)
}

// childInput is a child's stdin. When writing fails, it ends the process and discards the output,
// so that the connection goes on until everything that the child wrote has been read.
type childInput struct{ process *process.Process }

// Write fails only if the process cannot be ended.
func (i childInput) Write(p []byte) (int, error) {
	if _, err := i.process.Stdin().Write(p); err != nil {
		return len(p), i.process.Stop(context.Background())
	}
	return len(p), nil
}

// Close unblocks Write.
func (i childInput) Close() error { return i.process.Stdin().Close() }

// initialize sends initialize and sets info.
func (c *child) initialize(ctx context.Context, params backend.Raw) error {
	timeout := c.limits.startTimeout
	slow := fmt.Errorf("%s did not answer initialize within %v: see acp-agent's log at level info, under child=%[1]s",
		c.process.Name(), timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, slow)
	defer cancel()
	result, err := c.call(ctx, protocol.Initialize, params)()
	if err != nil {
		return err
	}
	if c.info, err = client.ParseAgent(result); err != nil {
		return err
	}
	if c.info.Version != client.ProtocolVersion {
		return fmt.Errorf("%s speaks version %d of ACP and acp-agent speaks version %d: install a version of it that speaks %[3]d",
			c.info.Name, c.info.Version, client.ProtocolVersion)
	}
	return nil
}

// call sends a request of our own.
func (c *child) call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return c.callFunc(ctx, method, params, nil)
}

// forward sends a request of the client that names no session. What the child sends after its
// response follows ours.
func (c *child) forward(ctx context.Context, method string, params backend.Raw) backend.Work {
	return c.callFunc(ctx, method, params, func(backend.Raw, error) { c.barrier.add(jsonrpc.Answered(ctx)) })
}

// callFunc sends a request and returns its result unchanged, or its error explained. onResponse may
// be nil; see [jsonrpc.Conn.CallFunc].
func (c *child) callFunc(ctx context.Context, method string, params backend.Raw, onResponse func(backend.Raw, error)) backend.Work {
	work := c.conn.CallFunc(ctx, method, params, onResponse)
	return func() (backend.Raw, error) {
		result, err := work()
		if !errors.Is(err, jsonrpc.ErrClosed) {
			return result, c.explain(params, err)
		}
		select {
		case <-c.done:
			return nil, c.explain(params, c.exit)
		case <-ctx.Done():
			return nil, err
		}
	}
}

// explain returns the error of a request with the given params as the client is told it: without
// secrets, and with what the user can do.
func (c *child) explain(params backend.Raw, err error) error {
	if e := responseError(err); e != nil {
		explained := &jsonrpc.Error{Code: e.Code, Message: c.secrets.Text(e.Message), Data: c.secrets.JSON(e.Data)}
		if e.Code == protocol.CodeAuthRequired && c.login != "" {
			explained.Message += fmt.Sprintf(" (if your editor does not offer to log in, run in a terminal: %s)", c.login)
		}
		return explained
	}
	if e, ok := errors.AsType[*endedError](err); ok {
		explained := *e
		id, _, _ := protocol.TakeSessionID(params)
		explained.InSession = id != ""
		return &explained
	}
	return err
}

// awaitEnd waits until a child that was stopped as idle has ended, because another process is about
// to open its sessions.
func (c *child) awaitEnd(ctx context.Context) error {
	c.mu.Lock()
	retired := c.retired
	c.mu.Unlock()
	if !retired {
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closeSession closes a session of the child, if the child supports that.
func (c *child) closeSession(ctx context.Context, id, params backend.Raw) (backend.Raw, error) {
	if !c.info.Close || c.ended.Load() {
		return nil, nil
	}
	return c.callStored(ctx, protocol.SessionClose, id, params)
}

// callStored calls a method of a session that may not be open. It is not an error if the session
// does not exist, or if the child has ended or does not answer in time.
func (c *child) callStored(ctx context.Context, method string, id, params backend.Raw) (backend.Raw, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.endTimeout, errNoAnswer)
	defer cancel()
	params, err := withSessionID(params, id)
	if err != nil {
		return nil, err
	}
	result, err := c.call(ctx, method, params)()
	if _, ended := errors.AsType[*endedError](err); ended {
		return nil, nil
	}
	if e := responseError(err); e != nil && e.Code == protocol.CodeNotFound {
		return nil, nil
	}
	if errors.Is(err, errNoAnswer) {
		c.log.Warn("the agent did not answer in time", "method", method, "limit", c.limits.endTimeout)
		return nil, nil
	}
	return result, err
}

// running reports whether sessions can use the child.
func (c *child) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.retired && !c.ended.Load()
}

// use reports whether the child is running, and if so keeps it from being stopped as idle until
// unuse is called.
func (c *child) use() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired || c.ended.Load() {
		return false
	}
	c.uses++
	return true
}

// unuse undoes use.
func (c *child) unuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses--
	c.active.Store(true)
}

// whileUsed wraps work that begins with a use of the child, which it ends.
func (c *child) whileUsed(work backend.Work) backend.Work {
	return func() (backend.Raw, error) {
		defer c.unuse()
		return work()
	}
}

// stopWhenIdle stops the child once it is idle. It returns when ctx ends.
func (c *child) stopWhenIdle(ctx context.Context) {
	ticker := time.NewTicker(c.limits.idle)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.stopIfIdle()
		case <-ctx.Done():
			return
		}
	}
}

// stopIfIdle stops the child if there was nothing to do for it since the last call, and its
// sessions can be opened in another process.
func (c *child) stopIfIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active.Swap(false) || c.uses > 0 || !c.loadable || c.retired {
		return
	}
	c.log.Info("stopping an idle process of the agent: it is started again for the next prompt in its sessions")
	c.retired = true
	c.stop()
}

// setLoadable sets whether sessions of the child can be opened in another process.
func (c *child) setLoadable(loadable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loadable = loadable
}

// acquire adds a session that the child serves, and a use for opening it. It returns false if the
// child is not running.
func (c *child) acquire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired || c.ended.Load() {
		return false
	}
	c.refs++
	c.uses++
	return true
}

// retain adds a session that the child serves.
func (c *child) retain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refs++
}

// release undoes retain. A child other than the main one ends with the last session that uses it.
func (c *child) release(ctx context.Context) error {
	c.mu.Lock()
	c.refs--
	last := c.refs == 0 && c.place != place{}
	c.retired = c.retired || last
	c.mu.Unlock()
	if !last {
		return nil
	}
	return c.close(ctx)
}

// close ends the connection once everything sent has been written, and then the process. When ctx
// ends, the process is killed.
func (c *child) close(ctx context.Context) error {
	c.stop()
	select {
	case <-c.done:
	case <-ctx.Done():
		_ = c.process.Stop(ctx) // serve gets the same error
		<-c.done
	}
	if _, ended := errors.AsType[*endedError](c.exit); !ended {
		return c.exit
	}
	return nil
}

// kill ends the child because it misbehaves.
func (c *child) kill(reason error) {
	c.mu.Lock()
	first := c.reason == nil
	if first {
		c.reason = reason
	}
	c.mu.Unlock()
	if first {
		c.log.Error("ending the agent", "reason", reason)
		c.stop()
	}
}

func (c *child) whyKilled() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// outbox queues notifications for a child that reads slowly, in order and up to a limit.
type outbox struct {
	serving  context.Context // ends with the connection
	draining sync.WaitGroup

	mu     sync.Mutex
	queued []notification
	bytes  int
	busy   bool // drain is running
}

type notification struct {
	method string
	params backend.Raw
}

// notify sends a notification without blocking, in the order of the calls. No notification is
// dropped silently: a child that leaves too many unread is killed.
func (c *child) notify(method string, params backend.Raw) {
	o := &c.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.busy {
		err := c.conn.TryNotify(method, params)
		if err == nil {
			return
		}
		if !errors.Is(err, jsonrpc.ErrQueueFull) {
			c.log.Warn("a notification did not reach the agent", "method", method, "error", err)
			return
		}
	}
	if len(o.queued) == c.limits.maxHeld || o.bytes+len(params) > c.limits.maxHeldBytes {
		c.kill(errNotReading)
		return
	}
	o.queued = append(o.queued, notification{method, params})
	o.bytes += len(params)
	if !o.busy {
		o.busy = true
		o.draining.Go(c.drain)
	}
}

// drain sends queued notifications until there are none.
func (c *child) drain() {
	o := &c.outbox
	for {
		o.mu.Lock()
		if len(o.queued) == 0 {
			o.busy = false
			o.mu.Unlock()
			return
		}
		n := o.queued[0]
		o.queued = o.queued[1:]
		o.bytes -= len(n.params)
		o.mu.Unlock()
		if err := c.conn.Notify(o.serving, n.method, n.params); err != nil {
			c.log.Warn("a notification did not reach the agent", "method", n.method, "error", err)
		}
	}
}

// cancel sends session/cancel ahead of queued notifications.
func (c *child) cancel(params backend.Raw) {
	if err := c.conn.ForceNotify(protocol.SessionCancel, params); err != nil {
		c.log.Debug("session/cancel did not reach the agent", "error", err)
	}
}

// endedError is returned for the requests of a child that has ended or closed its output.
type endedError struct {
	Name      string   // as in the log
	Exit      error    // a *process.ExitError, nil for status 0
	Stderr    []string // its last lines, nil if unknown
	Reason    error    // why we ended it, nil if it ended by itself
	InSession bool     // the request names a session
}

// Error says how the child ended and what to do.
func (e *endedError) Error() string {
	how := e.Name + " ended: exit status 0"
	if e.Exit != nil {
		how = e.Exit.Error()
	} else if len(e.Stderr) > 0 {
		how += ": " + text.Plain(e.Stderr[len(e.Stderr)-1])
	}
	if e.Reason != nil {
		how = fmt.Sprintf("%s was ended: %v", e.Name, e.Reason)
	}
	separator := "; "
	if strings.Contains(how, "\n") {
		separator = "\n"
	}
	advice := "see its stderr in acp-agent's log, under child=" + e.Name
	if e.Stderr != nil && len(e.Stderr) == 0 {
		advice = "it wrote nothing to its stderr"
	}
	if e.InSession {
		advice = "try again: it is restarted and the session continues; " + advice
	}
	return "the agent " + how + separator + advice
}

// Unwrap returns how the process ended.
func (e *endedError) Unwrap() error { return e.Exit }

var (
	// errNotReading is the reason for killing a child that leaves too much input unread.
	errNotReading = errors.New("it does not read its input")
	// errNoAnswer is the cause of a context whose time for an answer is over.
	errNoAnswer = errors.New("the agent did not answer")
)

// responseError returns the error with which the child answered, or nil if err is another error.
func responseError(err error) *jsonrpc.Error {
	e, _ := errors.AsType[*jsonrpc.Error](err)
	return e
}

// withSessionID returns params with a session id, which is raw JSON.
func withSessionID(params, id backend.Raw) (backend.Raw, error) {
	return strictjson.Put(params, protocol.SessionID, id)
}

// decodeID returns a session id as a string, "" if it is missing or not a string.
func decodeID(id backend.Raw) string {
	var s string
	if len(id) == 0 || json.Unmarshal(id, &s) != nil {
		return ""
	}
	return s
}

package proxy

import (
	"cmp"
	"context"
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
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// child is a process of the agent, which speaks over its standard streams.
type child struct {
	place   place // which sessions it serves
	limits  limits
	log     *slog.Logger
	client  backend.Client
	process *process.Process
	conn    *jsonrpc.Conn
	info    client.Agent // set by initialize
	router  *router
	barrier barrier // for messages that name no session
	unread  unread
	secrets *secret.Scrubber // in its stderr and errors
	own     []ownDir         // its directories outside the sessions' roots
	login   string           // how to log in, in a terminal; empty if unknown

	sandbox   sandbox.Policy // of the process
	sandboxer []string       // see Options.Sandboxer
	refused   refusals       // hosts that the sandbox did not allow
	settings  string         // names its section of the configuration file, in Markdown

	stray      atomic.Int64           // lines of its stdout that were no messages
	firstStray atomic.Pointer[string] // the first of them

	life    context.Context         // from before the start until the process is about to end
	stop    context.CancelCauseFunc // ends life; cause: nil, or how it misbehaved
	grace   context.Context         // the process is killed when it ends
	kill    context.CancelFunc      // ends grace
	started chan struct{}           // closed once it can be used, or could not be started
	done    chan struct{}           // closed once the connection and the process have ended
	crashed bool                    // it ended without stop, or misbehaved; set before done
	exit    error                   // why it ended, usually an *endedError; set before done

	mu     sync.Mutex
	uses   []*use // by sessions
	pins   int    // its start, requests to and from it, openings of sessions: all in progress
	active bool   // something was done for it, or it has sent something, since stopIfIdle
}

// newChild returns a child that is not started yet.
func (p *proxy) newChild(ctx context.Context, at place) *child {
	o := p.options
	c := &child{
		place: at, limits: o.limits, log: o.Logger, client: p.client, secrets: p.secrets,
		router: newRouter(o.limits.MaxHeld, o.limits.MaxHeldBytes),
		login:  o.Profile.Start.Login, sandboxer: o.Sandboxer,
		settings: text.Code("agents." + cmp.Or(o.Profile.Name, "NAME")),
		started:  make(chan struct{}), done: make(chan struct{}), pins: 1,
	}
	c.life, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	c.grace, c.kill = context.WithCancel(context.WithoutCancel(ctx))
	return c
}

// startProcess starts the process and serves its connection. onEnd is called once it has ended.
func (p *proxy) startProcess(ctx context.Context, c *child, onEnd func()) error {
	o := p.options
	command := p.command
	command.Args = slices.Concat(command.Args, c.place.args)
	command.Env = slices.Concat(command.Env, p.askEnv(), p.tempEnv())
	command, err := o.Profile.Restrict(command, c.place.roots)
	if err != nil {
		return err
	}
	c.own, c.sandbox = p.ownDirs(command), command.Sandbox
	c.process, err = process.Start(ctx, command, process.Options{
		Logger: o.Logger, Secrets: p.secrets, Grace: o.limits.ProcessGrace, Refused: c.refused.add,
	})
	if err != nil {
		return err
	}
	c.log = o.Logger.With("child", c.process.Name())
	lines := jsonrpc.NewLines(c.process.Stdout(), childInput{c.process}, o.limits.MaxLine)
	c.conn = jsonrpc.NewConn(lines, jsonrpc.HandlerFunc(c.serveMessage), jsonrpc.Options{
		OpaqueParams: true, Tap: c.traced(o.Trace), MaxQueue: o.limits.MaxQueue,
		Invalid: c.reportInvalid, Grace: 100 * time.Millisecond, Logger: o.Logger,
	})
	go c.serve(onEnd)
	return nil
}

// serve runs the connection until it ends, and then ends the process.
func (c *child) serve(onEnd func()) {
	defer close(c.done)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer c.stop(nil)
	if !c.place.isMain() {
		watching.Go(c.stopWhenIdle)
	}
	err := c.conn.Serve(c.life)
	crashed, reason := c.life.Err() == nil, context.Cause(c.life)
	if reason == context.Canceled {
		reason = nil
	}
	c.crashed = crashed || reason != nil
	c.stop(nil)
	ended, failure := c.end()
	if c.exit = failure; failure != nil {
		c.log.Error("cannot end the agent", "error", failure)
	} else {
		ended.Reason, ended.Stray = reason, c.firstStray.Load()
		c.exit = ended
	}
	switch {
	case crashed:
		c.logCrash(ended, err)
	case reason != nil:
		c.log.Error("ended the agent because it misbehaved", "reason", reason)
	}
	if stray := c.stray.Load(); stray > maxStray {
		c.log.Warn("the agent wrote lines to stdout that are not messages", "lines", stray)
	}
	onEnd()
}

// end ends the process with its group, and returns how it ended. It fails if the process cannot be
// ended.
func (c *child) end() (*endedError, error) {
	_ = c.process.Stdout().Close() // the connection may have closed it
	if err := c.process.Stop(c.grace); err != nil {
		return nil, err
	}
	return &endedError{Name: c.process.Name(), Stderr: c.process.Stderr(),
		Exit: c.process.Wait(context.Background())}, nil
}

// traced returns the function that passes the messages of the process to trace, or nil if trace is
// nil.
func (c *child) traced(trace func(process string, sent bool, line []byte)) jsonrpc.Tap {
	if trace == nil {
		return nil
	}
	name := fmt.Sprintf("%s[%d]", strings.ReplaceAll(c.process.Name(), " ", "_"), c.process.PID())
	return func(sent bool, line []byte) {
		if clean := c.secrets.JSON(line); clean != nil { // otherwise it is not JSON
			line = clean
		}
		trace(name, sent, line)
	}
}

// childInput is a process's stdin. When writing fails, it ends the process and discards the output,
// so that the connection continues until everything that the process wrote has been read.
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

// logCrash logs how a child ended unexpectedly, and what it wrote to stderr last. err is the
// connection's error, or nil if the child closed it. The error for the client is in exit.
func (c *child) logCrash(ended *endedError, err error) {
	status, stderr := "exit status 0", []string(nil)
	if exit, ok := errors.AsType[*process.ExitError](c.exit); ok {
		status = exit.State
	}
	if ended != nil {
		stderr = ended.Stderr
	}
	args := []any{"status", status, "stderr", strings.Join(stderr, "\n")}
	if err != nil {
		args = append(args, "error", err)
	}
	c.log.Warn("the agent ended unexpectedly", args...)
}

// initialize sends initialize and sets info.
func (c *child) initialize(ctx context.Context, params backend.Raw) error {
	timeout := c.limits.StartTimeout
	slow := fmt.Errorf("%s did not answer initialize within %v: "+
		"see acp-agent's log at level info, under child=%[1]s", c.process.Name(), timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, slow)
	defer cancel()
	notice := time.AfterFunc(c.limits.StartNotice, func() {
		c.log.Warn("the agent has not answered initialize yet; "+
			"it may be installing itself, as npx and uvx do the first time", "limit", timeout)
	})
	defer notice.Stop()
	result, err := c.request(ctx, protocol.Initialize, params)()
	if refused := responseError(err); refused != nil && refused.Code == jsonrpc.CodeMethodNotFound {
		return fmt.Errorf("%s does not speak ACP: it does not know the method initialize; "+
			"check its command, many agents need an argument such as acp", c.process.Name())
	}
	if err != nil {
		return err
	}
	if c.info, err = client.ParseAgent(result); err != nil {
		return err
	}
	if c.info.Version != client.ProtocolVersion {
		return fmt.Errorf("%s speaks version %d of ACP and acp-agent speaks version %d: "+
			"install a version of it that speaks %[3]d",
			c.info.Name, c.info.Version, client.ProtocolVersion)
	}
	return nil
}

// request sends a request of our own.
func (c *child) request(ctx context.Context, method string, params backend.Raw) backend.Work {
	return c.requestFunc(ctx, method, params, nil)
}

// forward sends a request of the client that names no session. Messages that the child sends after
// its response reach the client after our response.
func (c *child) forward(ctx context.Context, method string, params backend.Raw) backend.Work {
	return c.requestFunc(ctx, method, params, func(backend.Raw, error) {
		c.barrier.add(jsonrpc.Answered(ctx))
	})
}

// requestFunc sends a request and returns its result unchanged, or its error explained. onResponse
// may be nil; see [jsonrpc.Conn.CallFunc].
func (c *child) requestFunc(
	ctx context.Context, method string, params backend.Raw, onResponse func(backend.Raw, error),
) backend.Work {
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

// closeSession closes a session of the child, if the child supports that.
func (c *child) closeSession(ctx context.Context, id, params backend.Raw) (backend.Raw, error) {
	if !c.info.Close || !c.running() {
		return nil, nil
	}
	return c.requestStored(ctx, protocol.SessionClose, id, params)
}

// requestStored sends a request about a session that may not be open. It returns no error if the
// session does not exist, or if the child has ended or does not answer in time.
func (c *child) requestStored(
	ctx context.Context, method string, id, params backend.Raw,
) (backend.Raw, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.EndTimeout, errNoAnswer)
	defer cancel()
	result, err := c.request(ctx, method, withSessionID(params, id))()
	if _, ended := errors.AsType[*endedError](err); ended {
		return nil, nil
	}
	if e := responseError(err); e != nil && e.Code == protocol.CodeNotFound {
		return nil, nil
	}
	if errors.Is(err, errNoAnswer) {
		c.log.Warn("the agent did not answer in time", "method", method,
			"limit", c.limits.EndTimeout)
		return nil, nil
	}
	return result, err
}

// close ends the connection once everything sent has been written, and then the process. When ctx
// ends, the process is killed.
func (c *child) close(ctx context.Context) error {
	c.stop(nil)
	select {
	case <-c.done:
	case <-ctx.Done():
		c.kill()
		<-c.done
	}
	if _, ended := errors.AsType[*endedError](c.exit); !ended {
		return c.exit
	}
	return nil
}

// unread counts the notifications that were sent while the output to the child was full.
type unread struct {
	mu           sync.Mutex
	count, bytes int
}

// notify sends a notification without blocking, in the order of the calls. No notification is
// dropped silently: a child that leaves too many unread is killed.
func (c *child) notify(method string, params backend.Raw) {
	u := &c.unread
	u.mu.Lock()
	defer u.mu.Unlock()
	err := c.conn.TryNotify(method, params)
	switch {
	case !errors.Is(err, jsonrpc.ErrQueueFull):
		u.count, u.bytes = 0, 0
	case u.count == c.limits.MaxHeld || u.bytes+len(params) > c.limits.MaxHeldBytes:
		c.stop(errNotReading)
		return
	default:
		u.count++
		u.bytes += len(params)
		err = c.conn.ForceNotify(method, params)
	}
	if err != nil {
		c.log.Warn("cannot send the agent a notification", "method", method, "error", err)
	}
}

// cancel sends session/cancel, even if the output to the child is full.
func (c *child) cancel(params backend.Raw) {
	if err := c.conn.ForceNotify(protocol.SessionCancel, params); err != nil {
		c.log.Debug("cannot send the agent session/cancel", "error", err)
	}
}

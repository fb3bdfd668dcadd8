package child

import (
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
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// Process is a process of the agent, which speaks over its standard streams. It lives until Done is
// closed, and is not started again: another one takes its place.
type Process struct {
	Place   Place // which sessions it serves
	program *Program
	limits  Limits
	uses    uses

	life    context.Context         // from before the start until the process is about to end
	stop    context.CancelCauseFunc // ends life; cause: nil, or how it misbehaved
	grace   context.Context         // the process is killed when it ends
	kill    context.CancelFunc      // ends grace
	started chan struct{}           // closed once it can be used, or could not be started
	done    chan struct{}           // closed once the connection and the process have ended

	// Info is what it says about itself; set by introduce, before started is closed.
	Info      client.Agent
	connected       // set by startProcess
	crashed   bool  // it ended without stop, or misbehaved; set before done is closed
	exit      error // why it ended, usually an *EndedError; set before done is closed

	mu      sync.Mutex
	refused []hosts.Refusal // the hosts that the sandbox did not allow, each once

	stray      atomic.Int64           // lines of its stdout that are not messages
	firstStray atomic.Pointer[string] // the first of them

	notifying sync.Mutex // held by notify
	unread    int        // bytes of notifications sent while the output to it was full
}

// connected is the process itself, once it was started, with the connection to it.
type connected struct {
	Log     *slog.Logger
	Router  *Router // gets its messages
	process *process.Process
	sandbox sandbox.Policy
	own     []ownDir      // its directories outside the sessions' roots
	rpc     *jsonrpc.Conn // carries our requests and notifications
}

// newProcess returns a process that is not started yet.
func (p *Program) newProcess(ctx context.Context, at Place) *Process {
	ctx = context.WithoutCancel(ctx)
	life, stop := context.WithCancelCause(ctx)
	grace, kill := context.WithCancel(ctx)
	return &Process{
		program: p, Place: at, limits: p.config.Limits,
		uses: uses{life: life, stop: stop, lasting: at.isMain(), active: true},
		life: life, stop: stop, grace: grace, kill: kill,
		started: make(chan struct{}), done: make(chan struct{}),
	}
}

// start starts the process and initializes it. After repeated failures it waits first.
func (c *Process) start(ctx context.Context) error {
	defer close(c.started)
	p := c.program
	if err := c.launch(ctx); err != nil {
		p.remove(c)
		c.stop(nil)
		close(c.done)
		return err
	}
	if err := c.introduce(ctx); err != nil {
		err = errors.Join(err, c.close(context.WithoutCancel(ctx)))
		if !c.crashed { // otherwise it was counted when it ended
			p.failures.Add(1)
		}
		return p.config.Profile.ExplainStart(err)
	}
	return nil
}

// launch starts the process when it may start, and serves its connection.
func (c *Process) launch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(backend.ErrClosed) })()
	p := c.program
	if err := p.backOff(ctx); err != nil {
		return err
	}
	release, err := p.config.Admit(ctx)
	if err != nil {
		return err
	}
	if err := c.startProcess(ctx); err != nil {
		release()
		p.failures.Add(1)
		return p.config.Profile.ExplainStart(err)
	}
	go c.serve(release)
	return nil
}

// startProcess starts the process and connects to it.
func (c *Process) startProcess(ctx context.Context) error {
	p, o := c.program, c.program.config
	command := o.Command
	command.Args = slices.Concat(command.Args, c.Place.Args)
	command.Env = slices.Concat(command.Env, o.Env, o.tempEnv())
	command, err := o.Profile.Restrict(command, c.Place.Roots)
	if err != nil {
		return err
	}
	started, err := process.Start(ctx, command, process.Options{
		Logger: o.Logger, Secrets: o.Secrets, Grace: c.limits.ProcessGrace, Refused: c.noteRefusal,
	})
	if err != nil {
		return err
	}
	log := o.Logger.With("child", started.Name())
	c.connected = connected{process: started, Log: log, sandbox: command.Sandbox,
		own: o.ownDirs(command), rpc: c.connect(started), Router: &Router{client: p.client,
			log: log, limits: c.limits, routes: make(map[string]Recipient)}}
	return nil
}

// connect returns the connection to a process of the child, which is not served yet.
func (c *Process) connect(to *process.Process) *jsonrpc.Conn {
	lines := jsonrpc.NewLines(to.Stdout(), input{to}, c.limits.MaxLine)
	return jsonrpc.NewConn(lines, jsonrpc.HandlerFunc(c.serveMessage), jsonrpc.Options{
		OpaqueParams: true, Tap: c.traced(to), MaxQueue: c.limits.MaxQueue,
		Invalid: func(ctx context.Context, line []byte, tooLong bool) {
			if tooLong {
				c.Router.noteTooLong(ctx, line)
			} else {
				c.noteStray(line)
			}
		},
		Grace: 100 * time.Millisecond, Logger: c.program.config.Logger,
	})
}

// maxStray limits how many lines of a child that are no messages are logged with their text, and
// maxStrayLine how many characters of them.
const (
	maxStray     = 5
	maxStrayLine = 200
)

// noteStray logs a line that is not a message.
func (c *Process) noteStray(line []byte) {
	said := text.Line(text.Plain(c.program.config.Secrets.Text(string(line))), maxStrayLine)
	c.firstStray.CompareAndSwap(nil, &said)
	if c.stray.Add(1) <= maxStray {
		c.Log.Warn("the agent wrote a line to stdout that is not a message", "line", said)
	}
}

// traced returns the function that passes the messages of the process to Config.Trace,
// or nil if there is no such function.
func (c *Process) traced(by *process.Process) jsonrpc.Tap {
	trace := c.program.config.Trace
	if trace == nil {
		return nil
	}
	name := fmt.Sprintf("%s[%d]", strings.ReplaceAll(by.Name(), " ", "_"), by.PID())
	return func(sent bool, line []byte) {
		if clean := c.program.config.Secrets.JSON(line); clean != nil { // otherwise it is not JSON
			line = clean
		}
		trace(name, sent, line)
	}
}

// serve runs the connection until it ends, and then ends the process and calls release.
func (c *Process) serve(release func()) {
	defer close(c.done)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer c.stop(nil)
	if !c.Place.isMain() {
		watching.Go(c.stopWhenIdle)
	}
	err := c.rpc.Serve(c.life)
	crashed, reason := c.life.Err() == nil, context.Cause(c.life)
	if reason == context.Canceled {
		reason = nil
	}
	c.stop(nil)
	c.crashed, c.exit = crashed || reason != nil, c.endProcess(reason)
	switch {
	case crashed:
		c.logCrash(err)
	case reason != nil:
		c.Log.Error("ended the agent because it misbehaved", "reason", reason)
	}
	if stray := c.stray.Load(); stray > maxStray {
		c.Log.Warn("the agent wrote lines to stdout that are not messages", "lines", stray)
	}
	c.program.remove(c)
	if c.crashed {
		c.program.failures.Add(1)
	}
	release()
}

// endProcess ends the process, and returns how it ended. reason is why we end it, nil if it ended
// itself or is not needed.
func (c *Process) endProcess(reason error) error {
	_ = c.process.Stdout().Close() // the connection may have closed it
	if err := c.process.Stop(c.grace); err != nil {
		c.Log.Error("cannot end the agent", "error", err)
		return err
	}
	return &EndedError{Name: c.process.Name(), Exit: c.process.Wait(context.Background()),
		Stderr: c.process.Stderr(), Stray: c.firstStray.Load(), Reason: reason}
}

// logCrash logs how a child ended unexpectedly, and what it wrote to stderr last. err is the
// connection's error, or nil if the child closed it. The error for the client is in exit.
func (c *Process) logCrash(err error) {
	args := []any{"status", "exit status 0"}
	if exit, ok := errors.AsType[*process.ExitError](c.exit); ok {
		args[1] = exit.State
	}
	if ended, ok := errors.AsType[*EndedError](c.exit); ok {
		args = append(args, "stderr", strings.Join(ended.Stderr, "\n"))
	}
	if err != nil {
		args = append(args, "error", err)
	}
	c.Log.Warn("the agent ended unexpectedly", args...)
}

// close ends the connection once everything sent has been written, and then the process. When ctx
// ends, the process is killed.
func (c *Process) close(ctx context.Context) error {
	c.stop(nil)
	select {
	case <-c.done:
	case <-ctx.Done():
		c.kill()
		<-c.done
	}
	if _, ended := errors.AsType[*EndedError](c.exit); !ended {
		return c.exit
	}
	return nil
}

// Running reports whether sessions can use the child: it was started, and is not about to end.
func (c *Process) Running() bool {
	select {
	case <-c.started:
		return c.life.Err() == nil
	default:
		return false
	}
}

// awaitStart waits until the child was started, and reports whether it is running.
func (c *Process) awaitStart(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
	}
	return c.Running()
}

// Done is closed once the connection and the process have ended.
func (c *Process) Done() <-chan struct{} { return c.done }

// AwaitEnd waits until a child that is not running has ended, because another process is about to
// open its sessions.
func (c *Process) AwaitEnd(ctx context.Context) error {
	if c.Running() {
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stopWhenIdle stops the child once it and its subagents are idle, if its sessions can be opened in
// another process. It returns when the child is about to end.
func (c *Process) stopWhenIdle() {
	for range pause.Every(c.life, c.limits.Idle) {
		if c.Running() && (c.Info.Load || c.Info.Resume) && !c.Router.hasRunning() &&
			c.uses.stopIfIdle() {
			c.Log.Info(
				"stopping an idle process of the agent until the next prompt in its sessions")
		}
	}
}

// serveMessage gives a message of the child to the router, and keeps the child from being stopped
// as idle.
func (c *Process) serveMessage(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	unpin := c.Pin()
	if unpin == nil { // it is about to end
		return c.Router.accept(ctx, r)
	}
	return unpin.After(c.Router.accept(ctx, r))
}

// introduce initializes the child, and logs it in if the other children are logged in.
func (c *Process) introduce(ctx context.Context) error {
	p := c.program
	p.mu.Lock()
	initialize, login := p.initialize, p.login
	p.mu.Unlock()
	info, err := c.initialize(ctx, initialize)
	if err != nil {
		return err
	}
	c.Info = info
	p.setInfo(info)
	if login == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.limits.StartTimeout)
	defer cancel()
	if _, err := c.Request(ctx, protocol.Authenticate, login)(); err != nil {
		c.Log.Warn("cannot log the restarted agent in", "error", err)
	}
	return nil
}

// initialize sends initialize and returns what the child says about itself.
func (c *Process) initialize(ctx context.Context, params backend.Raw) (client.Agent, error) {
	timeout := c.limits.StartTimeout
	slow := fmt.Errorf("%s did not answer initialize within %v: "+
		"see acp-agent's log at level info, under child=%[1]s", c.process.Name(), timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, slow)
	defer cancel()
	notice := time.AfterFunc(c.limits.StartNotice, func() {
		c.Log.Warn("the agent has not answered initialize yet; "+
			"it may be installing itself, as npx and uvx do the first time", "limit", timeout)
	})
	defer notice.Stop()
	result, err := c.Request(ctx, protocol.Initialize, params)()
	if refused := Rejection(err); refused != nil && refused.Code == jsonrpc.CodeMethodNotFound {
		return client.Agent{}, fmt.Errorf("%s does not speak ACP: it does not know the method "+
			"initialize; check its command, many agents need an argument such as acp",
			c.process.Name())
	}
	if err != nil {
		return client.Agent{}, err
	}
	info, err := client.ParseAgent(result)
	if err == nil && info.Version != client.ProtocolVersion {
		err = fmt.Errorf("%s speaks version %d of ACP and acp-agent speaks version %d: "+
			"install a version of it that speaks %[3]d",
			info.Name, info.Version, client.ProtocolVersion)
	}
	return info, err
}

// Request sends a request.
func (c *Process) Request(ctx context.Context, method string, params backend.Raw) backend.Work {
	return c.RequestFunc(ctx, method, params, nil)
}

// RequestFunc sends a request and returns its result unchanged, or its error explained. onResponse
// may be nil; see [jsonrpc.Conn.CallFunc].
func (c *Process) RequestFunc(
	ctx context.Context, method string, params backend.Raw, onResponse func(backend.Raw, error),
) backend.Work {
	work := c.rpc.CallFunc(ctx, method, params, onResponse)
	return func() (backend.Raw, error) {
		result, err := work()
		return result, c.explain(ctx, params, err)
	}
}

// RequestStored sends a request about a session that may not be open. It returns no error if the
// session does not exist, or if the child has ended or does not answer in time.
func (c *Process) RequestStored(
	ctx context.Context, method string, params backend.Raw,
) (backend.Raw, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.EndTimeout, ErrNoAnswer)
	defer cancel()
	result, err := c.Request(ctx, method, params)()
	_, ended := errors.AsType[*EndedError](err)
	rejection := Rejection(err)
	switch {
	case ended, rejection != nil && rejection.Code == protocol.CodeNotFound:
		return nil, nil
	case errors.Is(err, ErrNoAnswer):
		c.Log.Warn("the agent did not answer in time", "method", method,
			"limit", c.limits.EndTimeout)
		return nil, nil
	}
	return result, err
}

// Notify sends a notification without blocking, in the order of the calls. No notification is
// dropped silently: a child that leaves too many unread is killed.
func (c *Process) Notify(method string, params backend.Raw) {
	c.notifying.Lock()
	defer c.notifying.Unlock()
	err := c.rpc.TryNotify(method, params)
	if errors.Is(err, jsonrpc.ErrQueueFull) {
		if c.unread += len(method) + len(params); c.unread > c.limits.MaxHeldBytes {
			c.stop(errNotReading)
			return
		}
		err = c.rpc.ForceNotify(method, params)
	} else {
		c.unread = 0
	}
	if err != nil {
		c.Log.Warn("cannot send the agent a notification", "method", method, "error", err)
	}
}

// Cancel sends session/cancel, even if the output to the child is full.
func (c *Process) Cancel(params backend.Raw) {
	if err := c.rpc.ForceNotify(protocol.SessionCancel, params); err != nil {
		c.Log.Debug("cannot send the agent session/cancel", "error", err)
	}
}

// input is a process's stdin. When writing fails, it ends the process and discards the output,
// so that the connection continues until everything that the process wrote has been read.
type input struct{ process *process.Process }

// Write fails only if the process cannot be ended.
func (i input) Write(p []byte) (int, error) {
	if _, err := i.process.Stdin().Write(p); err != nil {
		return len(p), i.process.Stop(context.Background())
	}
	return len(p), nil
}

// Close unblocks Write.
func (i input) Close() error { return i.process.Stdin().Close() }

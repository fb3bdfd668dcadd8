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
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// child is a process of the agent, which speaks over its standard streams. It lives until done is
// closed, and is not started again: another one takes its place.
type child struct {
	proxy   *proxy
	place   place // which sessions it serves
	limits  limits
	log     *slog.Logger
	process *process.Process
	conn    *jsonrpc.Conn
	info    client.Agent // set by initialize
	router  *router
	own     []ownDir // its directories outside the sessions' roots

	sandbox  sandbox.Policy // of the process
	settings string         // names its section of the configuration file, in Markdown

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

	notifying sync.Mutex // held by notify
	unread    int        // bytes of notifications sent while the output to it was full

	mu     sync.Mutex
	uses   []*use // by sessions
	pins   int    // its start, requests to and from it, openings of sessions: all in progress
	active bool   // something was done for it, or it has sent something, since stopIfIdle
	// refused are the hosts that the sandbox did not allow, each once.
	refused []hosts.Refusal
}

// newChild returns a child that is not started yet.
func (p *proxy) newChild(ctx context.Context, at place) *child {
	l := p.options.limits
	c := &child{
		proxy: p, place: at, limits: l, log: p.log,
		settings: text.Code("agents." + cmp.Or(p.options.Profile.Name, "NAME")),
		started:  make(chan struct{}), done: make(chan struct{}), pins: 1,
	}
	c.life, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	c.grace, c.kill = context.WithCancel(context.WithoutCancel(ctx))
	return c
}

// start starts the process and initializes it. After repeated failures it waits first.
func (c *child) start(ctx context.Context) error {
	defer c.unpin()
	defer close(c.started)
	p := c.proxy
	if err := c.launch(ctx); err != nil {
		p.children.remove(c)
		c.stop(nil)
		close(c.done)
		return err
	}
	if err := c.introduce(ctx); err != nil {
		err = errors.Join(err, c.close(context.WithoutCancel(ctx)))
		if !c.crashed { // otherwise it was counted when it ended
			p.children.failures.Add(1)
		}
		return p.options.Profile.ExplainStart(err)
	}
	return nil
}

// launch starts the process when it may start, and serves its connection.
func (c *child) launch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(backend.ErrClosed) })()
	p := c.proxy
	if err := p.backOff(ctx); err != nil {
		return err
	}
	release, err := p.admit(ctx)
	if err != nil {
		return err
	}
	if err := c.startProcess(ctx); err != nil {
		release()
		p.children.failures.Add(1)
		return p.options.Profile.ExplainStart(err)
	}
	go c.serve(release)
	return nil
}

// startProcess starts the process and connects to it.
func (c *child) startProcess(ctx context.Context) error {
	p, o := c.proxy, c.proxy.options
	command := p.command
	command.Args = slices.Concat(command.Args, c.place.args)
	command.Env = slices.Concat(command.Env, p.askEnv(), p.tempEnv())
	command, err := o.Profile.Restrict(command, c.place.roots)
	if err != nil {
		return err
	}
	c.own, c.sandbox = p.ownDirs(command), command.Sandbox
	c.process, err = process.Start(ctx, command, process.Options{
		Logger: o.Logger, Secrets: p.secrets, Grace: o.limits.ProcessGrace, Refused: c.noteRefusal,
	})
	if err != nil {
		return err
	}
	c.log = o.Logger.With("child", c.process.Name())
	c.router = newRouter(p.client, c.log, o.limits)
	lines := jsonrpc.NewLines(c.process.Stdout(), childInput{c.process}, o.limits.MaxLine)
	c.conn = jsonrpc.NewConn(lines, jsonrpc.HandlerFunc(c.serveMessage), jsonrpc.Options{
		OpaqueParams: true, Tap: c.traced(o.Trace), MaxQueue: o.limits.MaxQueue,
		Invalid: c.reportInvalid, Grace: 100 * time.Millisecond, Logger: o.Logger,
	})
	return nil
}

// serve runs the connection until it ends, and then ends the process and calls release.
func (c *child) serve(release func()) {
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
	_ = c.process.Stdout().Close() // the connection may have closed it
	if c.exit = c.process.Stop(c.grace); c.exit != nil {
		c.log.Error("cannot end the agent", "error", c.exit)
	} else {
		c.exit = &endedError{Name: c.process.Name(), Exit: c.process.Wait(context.Background()),
			Stderr: c.process.Stderr(), Stray: c.firstStray.Load(), Reason: reason}
	}
	switch {
	case crashed:
		c.logCrash(err)
	case reason != nil:
		c.log.Error("ended the agent because it misbehaved", "reason", reason)
	}
	if stray := c.stray.Load(); stray > maxStray {
		c.log.Warn("the agent wrote lines to stdout that are not messages", "lines", stray)
	}
	c.proxy.children.remove(c)
	if c.crashed {
		c.proxy.children.failures.Add(1)
	}
	release()
}

// logCrash logs how a child ended unexpectedly, and what it wrote to stderr last. err is the
// connection's error, or nil if the child closed it. The error for the client is in exit.
func (c *child) logCrash(err error) {
	args := []any{"status", "exit status 0"}
	if exit, ok := errors.AsType[*process.ExitError](c.exit); ok {
		args[1] = exit.State
	}
	if ended, ok := errors.AsType[*endedError](c.exit); ok {
		args = append(args, "stderr", strings.Join(ended.Stderr, "\n"))
	}
	if err != nil {
		args = append(args, "error", err)
	}
	c.log.Warn("the agent ended unexpectedly", args...)
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

// running reports whether sessions can use the child: it was started, and is not about to end.
func (c *child) running() bool {
	select {
	case <-c.started:
		return c.life.Err() == nil
	default:
		return false
	}
}

// awaitStart waits until the child was started, and reports whether it is running.
func (c *child) awaitStart(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
	}
	return c.running()
}

// awaitEnd waits until a child that is not running has ended, because another process is about to
// open its sessions.
func (c *child) awaitEnd(ctx context.Context) error {
	if c.running() {
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pin keeps the child from being stopped as idle until unpin is called. It returns false if the
// child is about to end.
func (c *child) pin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return false
	}
	c.pins++
	return true
}

// unpin undoes pin.
func (c *child) unpin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins--
	c.active = true
}

// whilePinned wraps work so that the child, which the caller has pinned, is unpinned at its end.
func (c *child) whilePinned(work backend.Work) backend.Work {
	return func() (backend.Raw, error) {
		defer c.unpin()
		return work()
	}
}

// stopWhenIdle stops the child once it is idle. It returns when the child is about to end.
func (c *child) stopWhenIdle() {
	for range pause.Every(c.life, c.limits.Idle) {
		c.stopIfIdle()
	}
}

// stopIfIdle stops the child if there was nothing to do for it since the last call, and its
// sessions can be opened in another process.
func (c *child) stopIfIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	busy := c.active || c.pins > 0 || c.router.hasRunningSubagent()
	c.active = false
	if busy || !c.info.Load && !c.info.Resume || !c.running() {
		return
	}
	c.log.Info("stopping an idle process of the agent until the next prompt in its sessions")
	c.stop(nil)
}

// serveMessage gives a message of the child to the router, and keeps the child from being stopped
// as idle.
func (c *child) serveMessage(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if !c.pin() { // it is about to end
		return c.router.accept(ctx, r)
	}
	work := c.router.accept(ctx, r)
	if work == nil {
		c.unpin()
		return nil
	}
	return c.whilePinned(work)
}

// maxStray limits how many lines of a child that are no messages are logged with their text.
const maxStray = 5

// reportInvalid logs a line that is not a message. It tells the user about an update that is too
// long.
func (c *child) reportInvalid(ctx context.Context, line []byte, tooLong bool) {
	if tooLong {
		c.router.noteTooLong(ctx, line)
		return
	}
	said := text.Line(text.Plain(c.proxy.secrets.Text(string(line))), maxTitle)
	c.firstStray.CompareAndSwap(nil, &said)
	if c.stray.Add(1) <= maxStray {
		c.log.Warn("the agent wrote a line to stdout that is not a message", "line", said)
	}
}

// traced returns the function that passes the messages of the process to trace, or nil if trace is
// nil.
func (c *child) traced(trace func(process string, sent bool, line []byte)) jsonrpc.Tap {
	if trace == nil {
		return nil
	}
	name := fmt.Sprintf("%s[%d]", strings.ReplaceAll(c.process.Name(), " ", "_"), c.process.PID())
	return func(sent bool, line []byte) {
		if clean := c.proxy.secrets.JSON(line); clean != nil { // otherwise it is not JSON
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

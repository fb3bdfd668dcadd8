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
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// child is a process of the agent, which speaks over its standard streams. It lives until done is
// closed, and is not started again: another one takes its place.
type child struct {
	proxy    *proxy
	place    childPlace // which sessions it serves
	limits   limits
	uses     childUses
	settings string // names its section of the configuration file, in Markdown

	life    context.Context         // from before the start until the process is about to end
	stop    context.CancelCauseFunc // ends life; cause: nil, or how it misbehaved
	grace   context.Context         // the process is killed when it ends
	kill    context.CancelFunc      // ends grace
	started chan struct{}           // closed once it can be used, or could not be started
	done    chan struct{}           // closed once the connection and the process have ended

	childProcess              // set by startProcess
	info         client.Agent // set by introduce, before started is closed
	crashed      bool         // it ended without stop, or misbehaved; set before done is closed
	exit         error        // why it ended, usually an *endedError; set before done is closed

	mu      sync.Mutex
	refused []hosts.Refusal // the hosts that the sandbox did not allow, each once

	stray      atomic.Int64           // lines of its stdout that are not messages
	firstStray atomic.Pointer[string] // the first of them

	notifying sync.Mutex // held by notify
	unread    int        // bytes of notifications sent while the output to it was full
}

// childProcess is the process of a child that was started, with the connection to it.
type childProcess struct {
	process *process.Process
	log     *slog.Logger
	sandbox sandbox.Policy
	own     []ownDir      // its directories outside the sessions' roots
	router  *router       // gets its messages
	rpc     *jsonrpc.Conn // carries our requests and notifications
}

// newChild returns a child that is not started yet.
func (p *proxy) newChild(ctx context.Context, at childPlace) *child {
	ctx = context.WithoutCancel(ctx)
	life, stop := context.WithCancelCause(ctx)
	grace, kill := context.WithCancel(ctx)
	return &child{
		proxy: p, place: at, limits: p.options.limits,
		uses:     childUses{life: life, stop: stop, lasting: at.isMain(), active: true},
		settings: text.Code("agents." + cmp.Or(p.options.Profile.Name, "NAME")),
		life:     life, stop: stop, grace: grace, kill: kill,
		started: make(chan struct{}), done: make(chan struct{}),
	}
}

// start starts the process and initializes it. After repeated failures it waits first.
func (c *child) start(ctx context.Context) error {
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
	started, err := process.Start(ctx, command, process.Options{
		Logger: o.Logger, Secrets: p.secrets, Grace: o.limits.ProcessGrace, Refused: c.noteRefusal,
	})
	if err != nil {
		return err
	}
	log := o.Logger.With("child", started.Name())
	c.childProcess = childProcess{process: started, log: log, sandbox: command.Sandbox,
		own: p.ownDirs(command), rpc: c.connect(started), router: &router{client: p.client,
			log: log, limits: c.limits, routes: make(map[string]recipient)}}
	return nil
}

// connect returns the connection to a process of the child, which is not served yet.
func (c *child) connect(to *process.Process) *jsonrpc.Conn {
	lines := jsonrpc.NewLines(to.Stdout(), childInput{to}, c.limits.MaxLine)
	return jsonrpc.NewConn(lines, jsonrpc.HandlerFunc(c.serveMessage), jsonrpc.Options{
		OpaqueParams: true, Tap: c.traced(to), MaxQueue: c.limits.MaxQueue,
		Invalid: func(ctx context.Context, line []byte, tooLong bool) {
			if tooLong {
				c.router.noteTooLong(ctx, line)
			} else {
				c.noteStray(line)
			}
		},
		Grace: 100 * time.Millisecond, Logger: c.proxy.options.Logger,
	})
}

// maxStray limits how many lines of a child that are no messages are logged with their text.
const maxStray = 5

// noteStray logs a line that is not a message.
func (c *child) noteStray(line []byte) {
	said := text.Line(text.Plain(c.proxy.secrets.Text(string(line))), maxTitle)
	c.firstStray.CompareAndSwap(nil, &said)
	if c.stray.Add(1) <= maxStray {
		c.log.Warn("the agent wrote a line to stdout that is not a message", "line", said)
	}
}

// traced returns the function that passes the messages of a process of the child to Options.Trace,
// or nil if there is no such function.
func (c *child) traced(by *process.Process) jsonrpc.Tap {
	trace := c.proxy.options.Trace
	if trace == nil {
		return nil
	}
	name := fmt.Sprintf("%s[%d]", strings.ReplaceAll(by.Name(), " ", "_"), by.PID())
	return func(sent bool, line []byte) {
		if clean := c.proxy.secrets.JSON(line); clean != nil { // otherwise it is not JSON
			line = clean
		}
		trace(name, sent, line)
	}
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

// endProcess ends the process, and returns how it ended. reason is why we end it, nil if it ended
// itself or is not needed.
func (c *child) endProcess(reason error) error {
	_ = c.process.Stdout().Close() // the connection may have closed it
	if err := c.process.Stop(c.grace); err != nil {
		c.log.Error("cannot end the agent", "error", err)
		return err
	}
	return &endedError{Name: c.process.Name(), Exit: c.process.Wait(context.Background()),
		Stderr: c.process.Stderr(), Stray: c.firstStray.Load(), Reason: reason}
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

// stopWhenIdle stops the child once it and its subagents are idle, if its sessions can be opened in
// another process. It returns when the child is about to end.
func (c *child) stopWhenIdle() {
	for range pause.Every(c.life, c.limits.Idle) {
		if c.running() && (c.info.Load || c.info.Resume) && !c.router.hasRunningSubagent() &&
			c.uses.stopIfIdle() {
			c.log.Info(
				"stopping an idle process of the agent until the next prompt in its sessions")
		}
	}
}

// serveMessage gives a message of the child to the router, and keeps the child from being stopped
// as idle.
func (c *child) serveMessage(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	unpin := c.uses.pin()
	if unpin == nil { // it is about to end
		return c.router.accept(ctx, r)
	}
	return unpinAfter(c.router.accept(ctx, r), unpin)
}

// introduce initializes the child, and logs it in if the other children are logged in.
func (c *child) introduce(ctx context.Context) error {
	p := c.proxy
	p.mu.Lock()
	initialize, login := p.initialize, p.login
	p.mu.Unlock()
	info, err := c.initialize(ctx, initialize)
	if err != nil {
		return err
	}
	c.info = info
	p.setAgentInfo(info)
	if login == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.limits.StartTimeout)
	defer cancel()
	if _, err := c.request(ctx, protocol.Authenticate, login)(); err != nil {
		c.log.Warn("cannot log the restarted agent in", "error", err)
	}
	return nil
}

// initialize sends initialize and returns what the child says about itself.
func (c *child) initialize(ctx context.Context, params backend.Raw) (client.Agent, error) {
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

// discard closes and deletes a session that is not needed. It does not wait for the answers.
func (c *child) discard(id backend.Raw) {
	c.log.Info("closing a session that the agent created too late")
	params := withSessionID(backend.Raw(`{}`), id)
	for _, method := range []string{protocol.SessionClose, protocol.SessionDelete} {
		if c.info.Serves(method) {
			_ = c.request(context.Background(), method, params)
		}
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

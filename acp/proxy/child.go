package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/process"
)

// agent is a child that was started, and the connection to it.
type agent struct {
	options Options
	log     *slog.Logger
	client  backend.Client
	process *process.Process
	conn    *jsonrpc.Conn
	info    client.Agent // set by initialize
	routes  *routes
	behind  barrier // of what names no session
	outbox  outbox

	owned bool     // it is there for one session, and ends with it
	flags []string // what it was given for that session's roots
	holds atomic.Int32

	stop     context.CancelFunc // ends the connection
	ending   atomic.Bool        // the connection has ended
	byItself atomic.Bool        // that was not our doing
	done     chan struct{}      // closed when connection and process have ended
	ended    error              // why, set before done is closed

	mu  sync.Mutex
	why error // why we end it, nil if we do not
}

// startAgent starts a child. ended is called once it has ended.
func startAgent(ctx context.Context, c process.Command, o Options, to backend.Client, ended func()) (*agent, error) {
	process, err := process.Start(ctx, c, o.process())
	if err != nil {
		return nil, err
	}
	a := &agent{
		options: o,
		log:     o.Logger.With("child", process.Name()),
		client:  to,
		process: process,
		routes:  newRoutes(o.limits.maxHeld, o.limits.maxHeldBytes),
		done:    make(chan struct{}),
	}
	a.conn = jsonrpc.NewConn(process.Stdout(), input{process}, jsonrpc.HandlerFunc(a.accept), o.connection())
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	a.outbox.serving = serving
	go a.serve(serving, ended)
	return a, nil
}

// serve is the connection's life. The process does not outlive it.
func (a *agent) serve(ctx context.Context, ended func()) {
	defer close(a.done)
	defer a.stop()
	err := a.conn.Serve(ctx)
	a.ending.Store(true)
	byItself := ctx.Err() == nil
	a.byItself.Store(byItself)
	if err != nil && byItself {
		a.log.Warn("the connection to the agent failed", "error", err)
	}
	a.stop()
	a.outbox.draining.Wait()
	ctx = context.WithoutCancel(ctx)
	_ = a.process.Stdout().Close() // the connection may have closed it
	if a.ended = a.process.Stop(ctx); a.ended != nil {
		a.log.Error("the agent cannot be ended", "error", a.ended)
	} else {
		a.ended = &EndedError{Name: a.process.Name(), Exit: a.process.Wait(ctx), Why: a.whyEnded()}
	}
	if byItself {
		a.log.Warn("the agent ended by itself", "error", a.ended)
	}
	ended()
}

// input is the child's stdin. A child that no longer takes input has ended or is made to; the connection goes
// on until everything that it said before was read.
type input struct{ process *process.Process }

// Write drops what cannot be written. It fails only if the child cannot be ended.
func (i input) Write(p []byte) (int, error) {
	if _, err := i.process.Stdin().Write(p); err != nil {
		return len(p), i.process.Stop(context.Background())
	}
	return len(p), nil
}

// Close unblocks Write.
func (i input) Close() error { return i.process.Stdin().Close() }

// hasEnded reports whether the child can no longer be talked to.
func (a *agent) hasEnded() bool { return a.ending.Load() }

// fail ends the child, because of what it does.
func (a *agent) fail(why error) {
	a.mu.Lock()
	first := a.why == nil
	if first {
		a.why = why
	}
	a.mu.Unlock()
	if first {
		a.log.Error("the agent is ended", "why", why)
		a.stop()
	}
}

func (a *agent) whyEnded() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.why
}

// hold keeps a child that is there for one session.
func (a *agent) hold() { a.holds.Add(1) }

// release undoes hold. With the last one such a child ends.
func (a *agent) release(ctx context.Context) error {
	if a.holds.Add(-1) > 0 || !a.owned {
		return nil
	}
	return a.close(ctx)
}

// close ends the connection, which lets what was sent reach the child, and then the child. When ctx ends,
// the child is killed.
func (a *agent) close(ctx context.Context) error {
	a.stop()
	select {
	case <-a.done:
	case <-ctx.Done():
		// An error comes again, from serve.
		_ = a.process.Stop(ctx)
		<-a.done
	}
	if _, ended := errors.AsType[*EndedError](a.ended); !ended {
		return a.ended
	}
	return nil
}

// initialize asks the child who it is.
func (a *agent) initialize(ctx context.Context, params backend.Raw, timeout time.Duration) error {
	slow := fmt.Errorf("%s did not answer initialize within %v: what it says is in acp-agent's log at level info, under child=%[1]s",
		a.process.Name(), timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, slow)
	defer cancel()
	result, err := a.call(ctx, "initialize", params)()
	if err != nil {
		return err
	}
	if a.info, err = client.ParseAgent(result); err != nil {
		return err
	}
	if a.info.Version != client.ProtocolVersion {
		return &VersionError{Name: a.info.Name, Version: a.info.Version}
	}
	return nil
}

// call sends the child a request of ours.
func (a *agent) call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return a.ask(ctx, method, params, nil)
}

// passOn sends the child a request of the client's that names no session. What the child sends behind its
// answer follows ours.
func (a *agent) passOn(ctx context.Context, method string, params backend.Raw) backend.Work {
	return a.ask(ctx, method, params, func(backend.Raw, error) {
		a.behind.add(jsonrpc.Answered(ctx))
	})
}

// ask sends the child a request and returns its response unchanged. onResponse may be nil; see [jsonrpc.Conn.CallFunc].
func (a *agent) ask(ctx context.Context, method string, params backend.Raw, onResponse func(backend.Raw, error)) backend.Work {
	work := a.conn.CallFunc(ctx, method, params, onResponse)
	return func() (backend.Raw, error) {
		result, err := work()
		if errors.Is(err, jsonrpc.ErrClosed) {
			return nil, a.cause(ctx, err)
		}
		return result, err
	}
}

// cause says why the connection ended, once that is known.
func (a *agent) cause(ctx context.Context, closed error) error {
	select {
	case <-a.done:
		return a.ended
	case <-ctx.Done():
		return closed
	}
}

// closeSession closes a session in the child, if that can be said to it. A child that does not answer in time
// is not waited for.
func (a *agent) closeSession(ctx context.Context, id backend.Raw) error {
	if !a.info.Close || a.hasEnded() {
		return nil
	}
	return a.end(ctx, "session/close", id)
}

// end closes or deletes a session in the child, in bounded time. One that is not there is no error.
func (a *agent) end(ctx context.Context, method string, id backend.Raw) error {
	ctx, cancel := context.WithTimeoutCause(ctx, a.options.limits.endTimeout, errNoAnswer)
	defer cancel()
	_, err := a.call(ctx, method, backend.Raw(`{"sessionId":`+string(id)+`}`))()
	if _, ended := errors.AsType[*EndedError](err); ended {
		return nil
	}
	if refused := refusal(err); refused != nil && refused.Code == codeNotFound {
		return nil
	}
	if errors.Is(err, errNoAnswer) {
		a.log.Warn("the agent did not answer in time", "method", method, "limit", a.options.limits.endTimeout)
		return nil
	}
	return err
}

// outbox is the notifications for a child that does not read fast enough. They wait in order, up to a limit.
type outbox struct {
	serving  context.Context // ends with the connection
	draining sync.WaitGroup

	mu    sync.Mutex
	held  []notification
	bytes int
	busy  bool // a goroutine sends what is held
}

type notification struct {
	method string
	params backend.Raw
}

// post sends the child a notification, in the order of the calls and without waiting. One that leaves too
// many unread is ended: none is dropped behind the client's back.
func (a *agent) post(method string, params backend.Raw) {
	o := &a.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.busy {
		err := a.conn.TryNotify(method, params)
		if err == nil {
			return
		}
		if !errors.Is(err, jsonrpc.ErrQueueFull) {
			a.log.Warn("a notification did not reach the agent", "method", method, "error", err)
			return
		}
	}
	if len(o.held) == a.options.limits.maxHeld || o.bytes+len(params) > a.options.limits.maxHeldBytes {
		a.fail(errNotReading)
		return
	}
	o.held = append(o.held, notification{method, params})
	o.bytes += len(params)
	if !o.busy {
		o.busy = true
		o.draining.Go(a.drain)
	}
}

// drain sends what is held, until nothing is.
func (a *agent) drain() {
	o := &a.outbox
	for {
		o.mu.Lock()
		if len(o.held) == 0 {
			o.busy = false
			o.mu.Unlock()
			return
		}
		n := o.held[0]
		o.held = o.held[1:]
		o.bytes -= len(n.params)
		o.mu.Unlock()
		if err := a.conn.Notify(o.serving, n.method, n.params); err != nil {
			a.log.Warn("a notification did not reach the agent", "method", n.method, "error", err)
		}
	}
}

// cancel sends the child a session/cancel, whatever waits to be read.
func (a *agent) cancel(params backend.Raw) {
	if err := a.conn.ForceNotify("session/cancel", params); err != nil {
		a.log.Debug("a cancel did not reach the agent", "error", err)
	}
}

// EndedError: the child ended, or closed its output. Every request that it had fails with this; the next one
// starts it anew.
type EndedError struct {
	// Name is the child's name, as in the log.
	Name string
	// Exit is a *child.ExitError, nil if it ended with status 0.
	Exit error
	// Why is why we ended it, nil if it ended by itself.
	Why error
}

func (e *EndedError) Error() string {
	how := fmt.Sprintf("%s ended: exit status 0", e.Name)
	if e.Exit != nil {
		how = e.Exit.Error()
	}
	if e.Why != nil {
		how = fmt.Sprintf("%s was ended: %v", e.Name, e.Why)
	}
	return fmt.Sprintf("the agent %s; what it wrote to stderr is in acp-agent's log at level info, under child=%s; try again: it is started anew, and the session goes on", how, e.Name)
}

// Unwrap returns how it ended.
func (e *EndedError) Unwrap() error { return e.Exit }

// VersionError: the child speaks another version of the protocol.
type VersionError struct {
	// Name is what the child calls itself.
	Name string
	// Version is what it answered with.
	Version int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s speaks version %d of ACP, acp-agent speaks 1: install a version of it that does", e.Name, e.Version)
}

// errNotReading is why a child that takes no input is ended.
var errNotReading = errors.New("it does not read what it is sent")

// refusal is the error that the child answered with, nil if err is something else.
func refusal(err error) *jsonrpc.Error {
	var refused *jsonrpc.Error
	errors.As(err, &refused)
	return refused
}

// Error codes of ACP.
const (
	codeAuthRequired = -32000
	codeNotFound     = -32002
)

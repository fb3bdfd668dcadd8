package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Serve answers an ACP client that writes to in and reads from out, until in ends or ctx
// does. Requests read before are answered, running turns as cancelled, and what was
// acknowledged is stored (clause W9). It returns nil at the end of in or of ctx, and an error
// if a stream broke. When it returns, nothing of it runs any more, except a read from an in that cannot be
// closed, and a runtime that did not end within CloseGrace.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.Backend == nil || o.Store == nil {
		return errors.New("acp: Options need a Runtime and a Store")
	}
	a := &agent{options: o.withDefaults(), runtime: o.Backend()}
	a.log = a.options.Logger
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	a.base = base
	a.conn = jsonrpc.NewConn(in, out, a, a.options.tuning.Wire)
	err := a.conn.Serve(ctx)
	end(backend.ErrClosed)
	a.shutdown()
	return err
}

// agent is one connection.
type agent struct {
	options Options
	log     *slog.Logger
	conn    *jsonrpc.Conn
	runtime backend.Backend
	base    context.Context // ends with the connection, after its requests were answered
	lanes   lanes
	gate    gate
	init    initialization
	imports imports
	active  atomic.Int64 // sessions active or being opened
	running goroutines   // those that outlive their request
}

// Accept implements [wire.Handler]. It runs on the read loop and does not block.
func (a *agent) Accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if r.IsNotification() {
		return a.acceptNotification(ctx, r)
	}
	if r.Method == methodInitialize {
		return a.acceptInitialize(ctx, r)
	}
	if !a.init.begun() {
		return failed(errNotInitialized(r.Method))
	}
	switch r.Method {
	case methodNew:
		return a.acceptNew(ctx, r)
	case methodLoad:
		return a.acceptReopen(ctx, r, backend.Load)
	case methodResume:
		return a.acceptReopen(ctx, r, backend.Resume)
	case methodFork:
		return a.acceptFork(ctx, r)
	case methodDelete:
		return a.acceptEnd(ctx, r, a.delete)
	case methodPrompt:
		return a.acceptPrompt(ctx, r)
	case methodList:
		return a.acceptList(ctx, r)
	case methodClose:
		return a.acceptEnd(ctx, r, a.close)
	default:
		return a.acceptCall(ctx, r)
	}
}

// acceptNotification takes session/cancel at once and passes the rest to the runtime.
func (a *agent) acceptNotification(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	id, rest, err := takeSession(r.Params)
	if err != nil {
		return nil
	}
	if r.Method == methodCancel {
		if l := a.lanes.find(id); l != nil {
			l.cancel(rest)
		}
		return nil
	}
	if !a.init.done() || a.isRequest(r.Method) {
		return nil
	}
	if id == "" {
		a.runtime.Notify(ctx, r.Method, r.Params)
		return nil
	}
	if a.lanes.find(id) == nil {
		return nil
	}
	at := a.lanes.enter(id, entryCall)
	notify := func() {
		defer at.leave()
		if s := at.lane.active(); s != nil {
			s.inOrder(func() { s.runtime.Notify(ctx, r.Method, rest) })
		}
	}
	if at.isHead() {
		notify()
		return nil
	}
	return func() (json.RawMessage, error) {
		defer at.leave()
		if err := at.wait(ctx); err != nil {
			return nil, err
		}
		notify()
		return nil, nil
	}
}

// isRequest reports whether a method is one that the adapter answers; without an id it is
// ignored.
func (a *agent) isRequest(method string) bool {
	switch method {
	case methodInitialize, methodNew, methodLoad, methodResume, methodFork, methodPrompt, methodList, methodClose, methodDelete:
		return true
	}
	return false
}

// acceptCall passes a request that the adapter does not serve itself to the runtime.
func (a *agent) acceptCall(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if r.Method == methodCancel {
		return nil
	}
	if shape := callShapes[r.Method]; shape != nil {
		if wrong := strictjson.Check(r.Params, shape); wrong != nil {
			return failed(strictjson.Refuse(wrong...))
		}
	}
	id, rest, err := takeSession(r.Params)
	if err != nil {
		return failed(err)
	}
	if id == "" || a.lanes.find(id) == nil {
		return a.callRuntime(ctx, id, r)
	}
	at := a.lanes.enter(id, entryCall)
	if at.isHead() {
		return a.callSession(ctx, at, r.Method, rest)
	}
	return func() (json.RawMessage, error) {
		if err := at.wait(ctx); err != nil {
			at.leave()
			return nil, err
		}
		return run(a.callSession(ctx, at, r.Method, rest), r.Method)
	}
}

// callSession hands a call to the session's runtime, in the session's order.
func (a *agent) callSession(ctx context.Context, at *place, method string, params backend.Raw) (work jsonrpc.Work) {
	defer at.leave()
	s := at.lane.active()
	if s == nil {
		return func() (json.RawMessage, error) { return nil, a.whyInactive(ctx, at.lane.id) }
	}
	s.inOrder(func() { work = jsonrpc.Work(s.runtime.Call(ctx, method, params)) })
	return work
}

// callRuntime hands a call without an active session to the runtime. The methods that ACP defines on
// a session need one.
func (a *agent) callRuntime(ctx context.Context, id sessionstore.ID, r *jsonrpc.Request) jsonrpc.Work {
	if id != "" && strings.HasPrefix(r.Method, "session/set_") {
		return func() (json.RawMessage, error) { return nil, a.whyInactive(ctx, id) }
	}
	if a.init.done() {
		return jsonrpc.Work(a.runtime.Call(ctx, r.Method, r.Params))
	}
	return func() (json.RawMessage, error) {
		if err := a.initialized(ctx); err != nil {
			return nil, err
		}
		return run(jsonrpc.Work(a.runtime.Call(ctx, r.Method, r.Params)), r.Method)
	}
}

// run runs work that may be nil.
func run(work jsonrpc.Work, method string) (json.RawMessage, error) {
	if work == nil {
		return nil, jsonrpc.MethodNotFound(method)
	}
	return work()
}

// failed is the work of a request that was refused when it was accepted.
func failed(err error) jsonrpc.Work {
	return func() (json.RawMessage, error) { return nil, err }
}

// lasting is a context for a lifecycle request: it ends when the client cancels the request, but not
// because the client closed its end, since a request that was read is answered (W9).
func (a *agent) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancelCause(a.base)
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, jsonrpc.ErrClosed) {
			cancel(cause)
		}
	})
	return lasting, func() {
		stop()
		cancel(nil)
	}
}

// shutdown closes the sessions and the runtime, within the grace.
func (a *agent) shutdown() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.base), a.options.tuning.CloseGrace)
	defer cancel()
	var closing sync.WaitGroup
	for _, s := range a.lanes.close() {
		closing.Go(func() { a.closeSession(ctx, s) })
	}
	closing.Wait()
	a.imports.wait(ctx)
	if err := a.guard("close", func() error { return a.runtime.Close(ctx) }); err != nil {
		a.log.Warn("closing the agent", "error", err)
	}
	if !a.running.wait(ctx) {
		a.log.Warn("the agent did not end in time")
	}
}

// closeSession frees a session if it is still the active one of its lane.
func (a *agent) closeSession(ctx context.Context, s *session) {
	if !s.lane.deactivate(s) {
		return
	}
	a.active.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if err := s.close(ctx); err != nil {
		a.log.Warn("closing a session", "session", s.id, "error", err)
	}
}

// evict ends a session that another process took or deleted, once its turn was answered.
func (a *agent) evict(s *session, cause error) {
	a.log.Warn("session ends here", "session", s.id, "cause", cause)
	at := a.lanes.enter(s.id, entryLifecycle)
	a.running.Go(func() {
		defer at.leave()
		if at.wait(a.base) != nil || at.lane.active() != s {
			return
		}
		if at.lane.endTurn(a.base, cause) == nil {
			a.closeSession(a.base, s)
		}
	})
}

// The methods of ACP v1 that the adapter knows by name.
const (
	methodInitialize = "initialize"
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodFork       = "session/fork"
	methodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"
	methodList       = "session/list"
	methodClose      = "session/close"
	methodDelete     = "session/delete"

	methodUpdate         = "session/update"
	methodReadFile       = "fs/read_text_file"
	methodWriteFile      = "fs/write_text_file"
	methodCreateTerminal = "terminal/create"
)

// errPanicked is what a call that panicked is said to return.
var errPanicked = errors.New("internal error: the agent's code panicked")

// guard calls a runtime's code on a goroutine of ours, or among steps that are to be done whatever it does. A
// panic in it is logged and becomes an error (W8).
func (a *agent) guard(what string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			jsonrpc.LogPanic(a.log, value, "in", what)
			err = errPanicked
		}
	}()
	return call()
}

// goroutines are those that somebody waits for. Unlike those of a WaitGroup, some may be started meanwhile: by what hangs,
// and was left behind.
type goroutines struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when there are none; nil if nobody waits
}

// Go runs do on a goroutine of its own.
func (g *goroutines) Go(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	go func() {
		defer g.done()
		do()
	}()
}

func (g *goroutines) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count--; g.count == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// wait waits until there are none, at most until ctx ends. It reports whether it came to that.
func (g *goroutines) wait(ctx context.Context) bool {
	g.mu.Lock()
	if g.count == 0 {
		g.mu.Unlock()
		return true
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// onDisk does what may have to wait for a disk, on a goroutine of its own, and waits for it as long as ctx lasts: a disk
// that does not answer takes no notice of a context. What is done too late is undone by drop, which may be nil.
func onDisk[T any](ctx context.Context, a *agent, do func() (T, error), drop func(T)) (T, error) {
	type done struct {
		value T
		err   error
	}
	taken := make(chan done)
	a.running.Go(func() {
		d := done{err: errPanicked}
		d.err = a.guard("disk", func() (err error) {
			d.value, err = do()
			return err
		})
		select {
		case taken <- d:
		case <-ctx.Done():
			if d.err == nil && drop != nil {
				drop(d.value)
			}
		}
	})
	select {
	case d := <-taken:
		return d.value, d.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

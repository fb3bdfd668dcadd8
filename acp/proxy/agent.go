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
	process, err := process.Start(ctx, c, o.Child)
	if err != nil {
		return nil, err
	}
	a := &agent{
		options: o,
		log:     o.Logger.With("child", process.Name()),
		client:  to,
		process: process,
		routes:  newRoutes(o.MaxHeld, o.MaxHeldBytes),
		done:    make(chan struct{}),
	}
	a.conn = jsonrpc.NewConn(process.Stdout(), input{process}, jsonrpc.HandlerFunc(a.accept), o.Wire)
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
	return a.ask(ctx, jsonrpc.Question{Method: method, Params: params})
}

// passOn sends the child a request of the client's that names no session. What the child sends behind its
// answer follows ours.
func (a *agent) passOn(ctx context.Context, method string, params backend.Raw) backend.Work {
	return a.ask(ctx, jsonrpc.Question{Method: method, Params: params, Answered: func(backend.Raw, error) {
		a.behind.add(jsonrpc.Answered(ctx))
	}})
}

// ask sends the child a request. Its answer passes as it is.
func (a *agent) ask(ctx context.Context, q jsonrpc.Question) backend.Work {
	work := a.conn.Ask(ctx, q)
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
	ctx, cancel := context.WithTimeoutCause(ctx, a.options.EndTimeout, errNoAnswer)
	defer cancel()
	_, err := a.call(ctx, method, backend.Raw(`{"sessionId":`+string(id)+`}`))()
	if _, ended := errors.AsType[*EndedError](err); ended {
		return nil
	}
	if refused := refusal(err); refused != nil && refused.Code == codeNotFound {
		return nil
	}
	if errors.Is(err, errNoAnswer) {
		a.log.Warn("the agent did not answer in time", "method", method, "limit", a.options.EndTimeout)
		return nil
	}
	return err
}

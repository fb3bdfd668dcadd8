package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/acp-agent/acp-agent/acp/child"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
)

// agent is a child that was started, and the connection to it.
type agent struct {
	options Options
	log     *slog.Logger
	client  runtime.Client
	process *child.Process
	conn    *wire.Conn
	info    client.Agent // set by initialize
	routes  *routes

	stop  context.CancelFunc // ends the connection
	done  chan struct{}      // closed when connection and process have ended
	ended error              // why, set before done is closed
}

func startAgent(ctx context.Context, c child.Command, o Options, to runtime.Client) (*agent, error) {
	process, err := child.Start(ctx, c, o.Child)
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
	a.conn = wire.NewConn(process.Stdout(), input{process}, wire.HandlerFunc(a.accept), o.Wire)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	go a.serve(serving)
	return a, nil
}

// serve is the connection's life. The process does not outlive it.
func (a *agent) serve(ctx context.Context) {
	defer close(a.done)
	defer a.stop()
	err := a.conn.Serve(ctx)
	byItself := ctx.Err() == nil
	if err != nil && byItself {
		a.log.Warn("the connection to the agent failed", "error", err)
	}
	ctx = context.WithoutCancel(ctx)
	_ = a.process.Stdout().Close() // the connection may have closed it
	if a.ended = a.process.Stop(ctx); a.ended != nil {
		a.log.Error("the agent cannot be ended", "error", a.ended)
		return
	}
	a.ended = &EndedError{Name: a.process.Name(), Exit: a.process.Wait(ctx)}
	if byItself {
		a.log.Warn("the agent ended by itself", "error", a.ended)
	}
}

// input is the child's stdin. A child that no longer takes input has ended or is made to; the connection goes
// on until everything that it said before was read.
type input struct{ process *child.Process }

// Write drops what cannot be written. It fails only if the child cannot be ended.
func (i input) Write(p []byte) (int, error) {
	if _, err := i.process.Stdin().Write(p); err != nil {
		return len(p), i.process.Stop(context.Background())
	}
	return len(p), nil
}

// Close unblocks Write.
func (i input) Close() error { return i.process.Stdin().Close() }

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
func (a *agent) initialize(ctx context.Context, params runtime.Raw, timeout time.Duration) error {
	slow := fmt.Errorf("%s did not answer initialize within %v: what it says is in acp-agent's log, under child=%[1]s",
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

// call sends the child a request. Its answer passes as it is.
func (a *agent) call(ctx context.Context, method string, params runtime.Raw) runtime.Work {
	work := a.conn.Call(ctx, method, params)
	return func() (runtime.Raw, error) {
		result, err := work()
		if errors.Is(err, wire.ErrClosed) {
			return nil, a.why(ctx, err)
		}
		return result, err
	}
}

// why says why the connection ended, once that is known.
func (a *agent) why(ctx context.Context, closed error) error {
	select {
	case <-a.done:
		return a.ended
	case <-ctx.Done():
		return closed
	}
}

// post sends the child a notification, without waiting for a child that does not read.
func (a *agent) post(method string, params runtime.Raw) {
	if err := a.conn.Post(method, params); err != nil {
		a.log.Warn("a notification did not reach the agent", "method", method, "error", err)
	}
}

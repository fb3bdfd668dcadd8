package acp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// adapter is a backend, and what initialize made of it. It runs the sessions that its connection
// opens. They may outlive the connection and have other viewers.
type adapter struct {
	options    Options
	home       *home
	connection *connection // whose capabilities the backend knows
	grants     RemoteRights
	log        *slog.Logger
	backend    backend.Backend
	base       context.Context // ends with the adapter, after the connection's requests were answered
	endBase    context.CancelCauseFunc

	uses *uses // by its connection, sessions and prompts; it ends after the last

	known    atomic.Pointer[initialization] // nil before initialize
	starting chan struct{}                  // limits how many MCP servers start at once
	sessions *listing.Sessions              // in the store, or known to the backend only
	tasks    *tasks.Group                   // what may outlive its request
}

// newAdapter returns the adapter of a connection, which uses it. It keeps the values of ctx, not
// its cancellation.
func newAdapter(ctx context.Context, o Options, c *connection) *adapter {
	grants := RemoteRights{Sessions: true, Account: true, Extensions: true}
	if c.peer.Remote {
		o, grants = o.forRemote(), o.RemoteRights
	}
	a := &adapter{options: o, home: c.home, connection: c, grants: grants,
		log: o.Logger, backend: o.Backend(), starting: make(chan struct{}, 8),
		uses: newUses(), tasks: tasks.NewGroup(o.Logger)}
	a.base, a.endBase = context.WithCancelCause(context.WithoutCancel(ctx))
	foreign, _ := a.backend.(backend.Foreign)
	a.sessions = listing.New(listing.Options{Store: o.Store, Foreign: foreign,
		OnlyKnown: !a.grants.Sessions, Owner: a.identity, AgentCommand: o.AgentCommand,
		Base: a.base, Tasks: a.tasks, Log: a.log, Times: o.tuning.Imports})
	return a
}

// take takes a slot of the principal for a session or prompt that the adapter runs. The adapter
// does not end before release was called, once or more often. If it has ended, so late a request
// gets no slot.
func (a *adapter) take(kind slot) (release func(), err error) {
	if !a.uses.add() {
		return nil, backend.ErrClosed
	}
	owner := a.home.owner
	if err := owner.take(kind); err != nil {
		a.uses.remove()
		return nil, err
	}
	return sync.OnceFunc(func() {
		a.uses.remove()
		owner.release(kind)
	}), nil
}

// run runs work. If work is nil, the backend does not know the method.
func run(work jsonrpc.Work, method string) (json.RawMessage, error) {
	if work == nil {
		return nil, jsonrpc.MethodNotFound(method)
	}
	return work()
}

// end ends the adapter, and with it all that goes on in its home.
func (a *adapter) end() {
	a.home.queues.Close()
	a.shutdown()
}

// shutdown ends running turns, and closes the sessions that the adapter runs and the backend.
// Nothing uses the adapter any more, or its home is closed.
func (a *adapter) shutdown() {
	a.endBase(backend.ErrClosed)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.base), a.options.tuning.CloseGrace)
	defer cancel()
	var closing sync.WaitGroup
	for _, s := range a.home.queues.Active() {
		if s.adapter != a {
			continue
		}
		closing.Go(func() {
			if err := s.queue.EndTurns(ctx, backend.ErrCancelled); err != nil {
				a.log.Warn("cannot end the turn", "session", s.id, "error", err)
			}
			s.close(ctx, nil)
		})
	}
	closing.Wait()
	a.sessions.Wait(ctx)
	if err := a.tasks.Guard("close", func() error { return a.backend.Close(ctx) }); err != nil {
		a.log.Warn("cannot close the agent", "error", err)
	}
	if !a.tasks.Wait(ctx) {
		a.log.Warn("the agent did not end in time")
	}
}

// requestContext returns a context for a request that is answered even after the client has closed
// its end: it ends when the client cancels the request, or with the connection. The caller calls
// cancel.
func (a *adapter) requestContext(
	ctx context.Context,
) (_ context.Context, cancel context.CancelCauseFunc) {
	lasting, end := context.WithCancelCause(a.base)
	pass := func() {
		if cause := context.Cause(ctx); !errors.Is(cause, jsonrpc.ErrClosed) {
			end(cause)
		}
	}
	stop := context.AfterFunc(ctx, pass)
	if ctx.Err() != nil {
		pass() // now, rather than when the goroutine of AfterFunc runs
	}
	return lasting, func(cause error) {
		stop()
		end(cause)
	}
}

// closingContext returns a context for closing a session, which outlives the cancellation of the
// request. Once the client has left, it lasts only for half of the grace, so that there is time to
// kill MCP servers that do not end and to send the response.
func (a *adapter) closingContext(ctx context.Context) (context.Context, context.CancelFunc) {
	closing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) {
			time.AfterFunc(a.options.tuning.CloseGrace/2, cancel)
		}
	})
	return closing, func() {
		stop()
		cancel()
	}
}

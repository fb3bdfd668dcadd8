package acp

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// The queues of an agent keep the requests of its sessions in order.
type (
	queue  = turns.Queue[*session]
	ticket = turns.Ticket[*session]
)

// agent is the agent's side of one connection.
type agent struct {
	options Options
	owner   *principal
	remote  bool // the client is not trusted with this machine
	grants  Grants
	log     *slog.Logger
	conn    *jsonrpc.Conn
	backend backend.Backend
	base    context.Context // ends with the agent, after the connection's requests were answered
	endBase context.CancelCauseFunc

	serving context.Context // of Serve; if it ends, turns do not outlive the connection
	grace   time.Duration   // how long turns outlive the connection
	left    atomic.Bool     // the connection has ended, and turns outlive it
	routes  routes          // to the agents that run sessions of this client
	unused  chan struct{}   // closed when nothing uses the agent; see principal.use

	init         initialization
	capabilities atomic.Pointer[clientCapabilities]
	starter      *mcpclient.Starter // limits how many MCP servers start at once

	queues   turns.Queues[*session] // the order of requests
	sessions *listing.Sessions      // in the store, or known to the backend only
	tasks    *tasks.Group           // what may outlive its request

	home func() workspace.Dir // the real path of the home directory, resolved once
}

// newAgent returns an agent for a connection over t. The agent keeps the values of ctx, not its
// cancellation.
func newAgent(
	ctx context.Context, o Options, owner *principal, remote bool, t jsonrpc.Transport,
) *agent {
	if remote {
		o = o.forRemote()
	}
	a := &agent{options: o, owner: owner, remote: remote, grants: grantsOf(o, remote), log: o.Logger,
		backend: o.Backend(),
		starter: mcpclient.NewStarter(8),
		unused:  make(chan struct{}), tasks: tasks.NewGroup(o.Logger)}
	if remote {
		a.grace = owner.server.options.Grace
	}
	a.serving = ctx
	a.base, a.endBase = context.WithCancelCause(context.WithoutCancel(ctx))
	a.home = sync.OnceValue(func() workspace.Dir { return workspace.Real(homeDir()) })
	foreign, _ := a.backend.(backend.Foreign)
	a.sessions = listing.New(listing.Options{Store: o.Store, Foreign: foreign,
		OnlyKnown: !a.grants.Sessions, Owner: a.init.owner, AgentCommand: o.AgentCommand,
		Base: a.base, Tasks: a.tasks, Log: a.log, Times: o.tuning.imports()})
	wire := o.tuning.Wire
	if over, ok := t.(*transport); ok {
		wire.Budget, _ = over.Conn.(jsonrpc.Budget)
	}
	a.conn = jsonrpc.NewConn(t, a, wire)
	return a
}

// Accept implements [jsonrpc.Handler]. It runs on the read loop and does not block.
func (a *agent) Accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	a.grants.limit(r)
	if a.lasting() {
		if work, ok := a.acceptLasting(ctx, r); ok {
			return work
		}
	}
	return a.accept(ctx, r, a)
}

// accept accepts a request that from's client sent. from is a itself, or another agent that does
// not run the request's session.
func (a *agent) accept(ctx context.Context, r *jsonrpc.Request, from *agent) jsonrpc.Work {
	if r.IsNotification() {
		return a.acceptNotification(ctx, r, from)
	}
	if r.Method != protocol.Initialize && !a.init.begun() {
		return jsonrpc.Fail(errNotInitialized(r.Method))
	}
	accept := a.served(r.Method, from)
	if accept == nil {
		return a.discreet(from.observed(r, a.acceptPassed(ctx, r, from)))
	}
	return a.discreet(from.observed(r, accept(ctx, r)))
}

// acceptFunc accepts a request.
type acceptFunc func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work

// served returns the function that accepts requests with this method from from's client, or nil if
// the adapter does not serve the method.
func (a *agent) served(method string, from *agent) acceptFunc {
	stored := func(kind turns.RequestKind, do storedFunc) acceptFunc {
		return func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
			return a.acceptStored(ctx, r, kind, do)
		}
	}
	switch method {
	case protocol.Initialize:
		return a.acceptInitialize
	case protocol.SessionNew:
		return a.acceptNew
	case protocol.SessionFork:
		return a.acceptFork
	case protocol.SessionLoad, protocol.SessionResume:
		return func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
			return a.acceptLoad(ctx, r, from)
		}
	case protocol.SessionPrompt:
		return func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
			return a.acceptPrompt(ctx, r, from)
		}
	case protocol.SessionList:
		return a.acceptList
	case protocol.SessionClose:
		return stored(turns.Lifecycle, a.closeFor(from))
	case protocol.SessionDelete:
		return stored(turns.Lifecycle, a.delete)
	case protocol.SessionArchive:
		return stored(turns.Lifecycle, a.archive)
	case protocol.SessionUnarchive:
		return stored(turns.Ordinary, a.unarchive)
	case protocol.SessionSetTitle:
		return a.acceptSetTitle
	case protocol.SessionOptions:
		return a.acceptOptions
	case protocol.SessionStatus:
		return stored(turns.Ordinary, a.status)
	}
	return nil
}

// acceptNotification handles session/cancel of from's client at once and passes other notifications
// to the backend.
func (a *agent) acceptNotification(
	ctx context.Context, r *jsonrpc.Request, from *agent,
) jsonrpc.Work {
	given, rest, err := protocol.TakeSessionID(r.Params)
	if err != nil {
		return nil
	}
	id := sessionstore.ID(given)
	if of, child, ok := splitChild(id); ok {
		if s := a.activeSession(of); s != nil && r.Method == protocol.SessionCancel {
			s.host.viewers.Stop(from)
			s.cancelChild(child, rest())
		}
		return nil
	}
	q := a.queues.Find(id)
	switch {
	case r.Method == protocol.SessionCancel:
		if q != nil {
			if s := q.Active(); s != nil {
				s.host.viewers.Stop(from)
			}
			q.Cancel(rest())
		}
		return nil
	case !a.init.done(), shapeOf(r.Method) != nil, protocol.IsRefused(r.Method):
		// a request sent as a notification is ignored
		return nil
	case !a.grants.allows(r.Method), namesSetup(r.Params):
		return a.refuse(r, id)
	case id == "":
		a.backend.Notify(ctx, r.Method, r.Params)
		return nil
	case q == nil:
		return nil
	}
	at := a.queues.Ticket(id, turns.Ordinary)
	notify := func() {
		defer at.Release()
		if s := at.Queue.Active(); s != nil {
			s.WithBackend(func() { s.backend.Notify(ctx, r.Method, rest()) })
		}
	}
	if at.Holds() {
		notify()
		return nil
	}
	return func() (json.RawMessage, error) {
		defer at.Release()
		if err := at.Acquire(ctx); err != nil {
			return nil, err
		}
		notify()
		return nil, nil
	}
}

// acceptPassed accepts a request of from's client that the adapter does not serve: it passes it to
// the backend.
func (a *agent) acceptPassed(
	ctx context.Context, r *jsonrpc.Request, from *agent,
) jsonrpc.Work {
	if r.Method == protocol.SessionCancel || protocol.IsRefused(r.Method) {
		return nil
	}
	if !a.grants.allows(r.Method) &&
		!(r.Method == protocol.Authenticate && namesNoSignIn(r.Params)) {
		return a.refuse(r, sessionOf(r))
	}
	if shape := passedShapes[r.Method]; shape != nil {
		if wrong := strictjson.Check(r.Params, shape); wrong != nil {
			return jsonrpc.Fail(strictjson.Refuse(wrong...))
		}
	}
	check, err := a.setupCheck(r)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	given, rest, err := protocol.TakeSessionID(r.Params)
	if err != nil {
		return jsonrpc.Fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "invalid params: %v", err))
	}
	id := sessionstore.ID(given)
	if id == "" || a.queues.Find(id) == nil {
		return a.passToBackend(ctx, id, r, check)
	}
	at := a.queues.Ticket(id, turns.Ordinary)
	if at.Holds() && check == nil {
		return a.passToSession(ctx, at, from, r.Method, rest())
	}
	return func() (json.RawMessage, error) {
		err := at.Acquire(ctx)
		if err == nil && check != nil {
			err = check(ctx)
		}
		if err != nil {
			at.Release()
			return nil, protocolError(err)
		}
		return run(a.passToSession(ctx, at, from, r.Method, rest()), r.Method)
	}
}

// passToSession passes a request to the session's backend. at holds the session's queue and is
// released.
func (a *agent) passToSession(
	ctx context.Context, at *ticket, from *agent, method string, params backend.Raw,
) (work jsonrpc.Work) {
	defer at.Release()
	s := at.Queue.Active()
	if s == nil {
		return func() (json.RawMessage, error) { return nil, a.whyInactive(ctx, at.Queue.ID) }
	}
	s.WithBackend(func() { work = s.backend.Call(ctx, method, params) })
	return s.telling(from, method, params, work)
}

// passToBackend passes a request that names no active session to the backend, unless ACP defines
// the method on sessions, or the id can only be the backend's own and the client may not use it.
// Requests about child sessions are not passed on, nor those of a client without Extensions that
// name no session although the method needs one. check, if not nil, is called first.
func (a *agent) passToBackend(
	ctx context.Context, id sessionstore.ID, r *jsonrpc.Request, check func(context.Context) error,
) jsonrpc.Work {
	if id == "" && !a.grants.Extensions && strings.HasPrefix(r.Method, protocol.SessionPrefix) {
		return jsonrpc.Fail(strictjson.Refuse(
			strictjson.NewViolation(protocol.SessionID, nil, strictjson.Required)))
	}
	_, _, isChild := splitChild(id)
	if isChild || id != "" && (!a.grants.Sessions || strings.HasPrefix(r.Method, "session/set_")) {
		return func() (json.RawMessage, error) { return nil, a.whyInactive(ctx, id) }
	}
	if a.init.done() && check == nil {
		return a.callBackend(ctx, r)
	}
	return func() (json.RawMessage, error) {
		err := a.initialized(ctx)
		if err == nil && check != nil {
			err = check(ctx)
		}
		if err != nil {
			return nil, protocolError(err)
		}
		return run(a.callBackend(ctx, r), r.Method)
	}
}

// whyInactive returns the error for a session that is not active: it is unknown, or stored and has
// to be loaded first.
func (a *agent) whyInactive(ctx context.Context, id sessionstore.ID) error {
	if _, err := a.options.Store.Get(ctx, id); err != nil {
		return protocolError(err)
	}
	return errNotActive(id)
}

// run runs work. If work is nil, the backend does not know the method.
func run(work jsonrpc.Work, method string) (json.RawMessage, error) {
	if work == nil {
		return nil, jsonrpc.MethodNotFound(method)
	}
	return work()
}

// shutdown ends running turns, and closes the sessions and the backend.
func (a *agent) shutdown() {
	a.endBase(backend.ErrClosed)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.base), a.options.tuning.CloseGrace)
	defer cancel()
	var closing sync.WaitGroup
	for _, s := range a.queues.Close() {
		closing.Go(func() {
			if err := s.queue.EndTurns(ctx, backend.ErrCancelled); err != nil {
				a.log.Warn("cannot end the turn", "session", s.id, "error", err)
			}
			a.closeSession(ctx, s, nil)
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

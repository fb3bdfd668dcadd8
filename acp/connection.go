package acp

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// connection is the connection of a client. It views sessions, and opens them with its adapter.
type connection struct {
	*jsonrpc.Conn
	adapter *adapter
	home    *home
	peer    Peer

	serving context.Context // of Serve; the turns that the client has prompted end with it
	left    atomic.Bool     // the connection has ended
}

// connect returns a connection over t, with an adapter in the home h. ctx is the context of
// Serve.
func connect(ctx context.Context, t jsonrpc.Transport, p Peer, o Options, h *home) *connection {
	c := &connection{home: h, peer: p, serving: ctx}
	c.adapter = newAdapter(ctx, o, c)
	wire := o.tuning.Wire
	if over, ok := t.(*transport); ok {
		wire.Budget, _ = over.Conn.(jsonrpc.Budget)
	}
	c.Conn = jsonrpc.NewConn(t, c, wire)
	return c
}

// graceNow returns how long turns go on if the client disconnects now.
func (c *connection) graceNow() time.Duration {
	if c.serving.Err() != nil || c.home.owner.ctx.Err() != nil {
		return 0
	}
	return c.home.grace
}

// endsTurns reports whether the client has left, or is made to leave, and its turns end then. The
// turns learn it one after the other.
func (c *connection) endsTurns() bool {
	return c.graceNow() == 0 && (c.Ended() || c.serving.Err() != nil)
}

// HasLeft implements [turns.Client].
func (c *connection) HasLeft() bool { return c.left.Load() }

// Answers implements [turns.Client].
func (c *connection) Answers() bool { return c.peer.Role.has(toAnswer) }

// Accept implements [jsonrpc.Handler]. It runs on the read loop and does not block.
func (c *connection) Accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	c.adapter.grants.prune(r)
	c.peer.Role.narrow(r)
	if refusal := c.admit(r); refusal != nil {
		return refusal
	}
	accept := methodOf(r.Method).accept
	switch {
	case accept != nil:
	case r.IsNotification():
		accept = (*connection).acceptNotification
	default:
		accept = (*connection).acceptPassed
	}
	work := c.withEvent(r, accept(c, ctx, r))
	if work == nil {
		return nil
	}
	return func() (json.RawMessage, error) {
		result, err := work()
		return result, c.withoutStorePath(err)
	}
}

// admit returns the work that refuses a message, or nil if it is accepted. All messages pass
// through here. No check relies on an earlier one: the order says only which error a client gets.
func (c *connection) admit(r *jsonrpc.Request) (refusal jsonrpc.Work) {
	m := methodOf(r.Method)
	switch {
	case !c.peer.Role.has(m.needs):
		return c.refuse(r)
	case r.Method != protocol.Initialize && c.adapter.known.Load() == nil:
		return jsonrpc.Fail(errNotInitialized(r.Method))
	case protocol.IsRefused(r.Method), m.shape != nil && m.notifies != r.IsNotification():
		return jsonrpc.Fail(jsonrpc.MethodNotFound(r.Method))
	case m.accept == nil && !c.mayPass(r):
		return c.refuse(r)
	}
	return nil
}

// mayPass reports whether a message that the adapter does not serve may go to the backend. A
// notification may not name folders or MCP servers: it does not wait until they are checked.
func (c *connection) mayPass(r *jsonrpc.Request) bool {
	if r.IsNotification() && namesSetup(r.Params) {
		return false
	}
	return c.adapter.grants.allows(r.Method) ||
		r.Method == protocol.Authenticate && namesNoSignIn(r.Params)
}

// acceptNotification passes a notification to the backend's session, or to the backend if it names
// none. It drops a notification that comes before the end of initialize, or that names a session
// which is not open.
func (c *connection) acceptNotification(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	given, rest, err := protocol.TakeSessionID(r.Params)
	id := sessionstore.ID(given)
	switch {
	case err != nil, !c.adapter.isKnown():
		return nil
	case id == "":
		c.adapter.backend.Notify(ctx, r.Method, r.Params)
		return nil
	case c.home.queues.Find(id) == nil:
		return nil
	}
	return c.inSession(ctx, id, r.Method, nil, func(s *session) jsonrpc.Work {
		s.WithBackend(func(b backend.Session) { b.Notify(ctx, r.Method, rest()) })
		return nil
	})
}

// acceptCancel serves session/cancel, which does not queue. A client that has the session open, or
// is opening it, ends all turns. Any other client ends only its own turns.
func (c *connection) acceptCancel(_ context.Context, r *jsonrpc.Request) jsonrpc.Work {
	given, rest, err := protocol.TakeSessionID(r.Params)
	id, subagent, isSubagent := address.Split(sessionstore.ID(given))
	q := c.home.queues.Find(id)
	if err != nil || q == nil {
		return nil
	}
	s := q.Active()
	views := q.IsOpening(c) || s != nil && s.viewers.Has(c)
	if s != nil && views {
		s.viewers.Stop(c)
	}
	switch {
	case !isSubagent:
		q.Cancel(rest(), func(sender any) bool { return views || sender == c })
	case s != nil && views:
		s.cancelSubagent(subagent, rest())
	}
	return nil
}

// passedRequest is a request that the adapter passes to the backend.
type passedRequest struct {
	id    sessionstore.ID             // of the session that it names, or ""
	rest  func() backend.Raw          // returns its params without the id
	check func(context.Context) error // comes before; nil if there is nothing to check
}

// decodePassed reads a request that the adapter does not serve. The request of a client without
// Extensions must name a session if its method is about sessions.
func (c *connection) decodePassed(r *jsonrpc.Request) (p passedRequest, err error) {
	if shape := methodOf(r.Method).shape; shape != nil {
		if err := strictjson.Refuse(strictjson.Check(r.Params, shape)...); err != nil {
			return p, err
		}
	}
	if p.check, err = c.adapter.setupCheck(r); err != nil {
		return p, err
	}
	id, rest, err := protocol.TakeSessionID(r.Params)
	if err != nil {
		return p, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "invalid params: %v", err)
	}
	p.id, p.rest = sessionstore.ID(id), rest
	if id == "" && !c.adapter.grants.Extensions &&
		strings.HasPrefix(r.Method, protocol.SessionPrefix) {
		return p, strictjson.Refuse(
			strictjson.NewViolation(protocol.SessionID, nil, strictjson.Required))
	}
	return p, nil
}

// acceptPassed passes a request to the backend's session, or to the backend if it names no session
// that is open. It does so at once if nothing has to be waited for or checked.
func (c *connection) acceptPassed(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	p, err := c.decodePassed(r)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	if p.id != "" && !c.mayBeBackends(p.id, r.Method) {
		return c.inSession(ctx, p.id, r.Method, p.check, func(s *session) (work jsonrpc.Work) {
			params := p.rest()
			s.WithBackend(func(b backend.Session) { work = b.Call(ctx, r.Method, params) })
			return s.withSettingTold(c, r.Method, params, work)
		})
	}
	a := c.adapter
	if a.isKnown() && p.check == nil {
		return a.callBackend(ctx, r)
	}
	return func() (json.RawMessage, error) {
		err := c.initialized(ctx)
		if err == nil && p.check != nil {
			err = p.check(ctx)
		}
		if err != nil {
			return nil, protocolError(err)
		}
		return run(a.callBackend(ctx, r), r.Method)
	}
}

// mayBeBackends reports whether the session that a request names may be one that only the backend
// knows, and that the client may use. Methods that set something need an open one.
func (c *connection) mayBeBackends(id sessionstore.ID, method string) bool {
	_, _, isSubagent := address.Split(id)
	return c.adapter.grants.Sessions && !isSubagent && c.home.queues.Find(id) == nil &&
		!strings.HasPrefix(method, "session/set_")
}

// inSession has a message served by the session with this id, if the client has it open. It is
// served at once if it waits for no other message and check is nil, and otherwise once check allows
// it.
func (c *connection) inSession(
	ctx context.Context, id sessionstore.ID, method string, check func(context.Context) error,
	serve func(*session) jsonrpc.Work,
) jsonrpc.Work {
	ticket := c.home.queues.Ticket(id, turns.Ordinary, c)
	begin := func() jsonrpc.Work {
		defer ticket.Release()
		if s := ticket.Queue.Active(); s != nil && s.viewers.Has(c) {
			return serve(s)
		}
		return func() (json.RawMessage, error) { return nil, c.adapter.whyInactive(ctx, id) }
	}
	if ticket.Holds() && check == nil {
		return begin()
	}
	return func() (json.RawMessage, error) {
		defer ticket.Release()
		err := ticket.Acquire(ctx)
		if err == nil && check != nil {
			err = check(ctx)
		}
		if err != nil {
			return nil, protocolError(err)
		}
		return run(begin(), method)
	}
}

// whyInactive returns the error for a session that is not open in the client: it is unknown, or has
// to be loaded first.
func (a *adapter) whyInactive(ctx context.Context, id sessionstore.ID) error {
	if a.home.session(id) != nil {
		return errNotActive(id)
	}
	if _, err := a.options.Store.Get(ctx, id); err != nil {
		return protocolError(err)
	}
	return errNotActive(id)
}

// sessionOf returns the id of the session that a request names, or "".
func sessionOf(r *jsonrpc.Request) sessionstore.ID {
	return sessionstore.ID(strictjson.FindText(r.Params, protocol.SessionID))
}

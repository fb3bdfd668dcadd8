package acp

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// connection is the connection of a client. It views sessions, and opens them with an agent of its
// own.
type connection struct {
	*jsonrpc.Conn
	agent *agent
	home  *home
	peer  Peer

	serving context.Context // of Serve; if it ends, the turns that the client has prompted do
	left    atomic.Bool     // the connection has ended
}

// connect returns a connection over t of a client of the agent. ctx is that of Serve.
func (a *agent) connect(ctx context.Context, t jsonrpc.Transport, p Peer) *connection {
	c := &connection{agent: a, home: a.home, peer: p, serving: ctx}
	wire := a.options.tuning.Wire
	if over, ok := t.(*transport); ok {
		wire.Budget, _ = over.Conn.(jsonrpc.Budget)
	}
	c.Conn = jsonrpc.NewConn(t, c, wire)
	a.connection = c
	return c
}

// graceNow returns how long turns go on if the client disconnects now.
func (c *connection) graceNow() time.Duration {
	if c.serving.Err() != nil || c.home.owner.ctx.Err() != nil {
		return 0
	}
	return c.home.grace
}

// endsTurns reports whether the client has left, or is made to, and its turns end with that. Each
// turn learns it by itself, one after the other.
func (c *connection) endsTurns() bool {
	return c.graceNow() == 0 && (c.Ended() || c.serving.Err() != nil)
}

// HasLeft implements [turns.Client].
func (c *connection) HasLeft() bool { return c.left.Load() }

// Answers implements [turns.Client].
func (c *connection) Answers() bool { return c.peer.Role.has(answers) }

// Accept implements [jsonrpc.Handler]. It runs on the read loop and does not block.
func (c *connection) Accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	c.agent.grants.prune(r)
	if !c.peer.Role.May(r.Method) {
		return c.refuse(r, sessionOf(r))
	}
	c.peer.Role.narrow(r)
	if r.IsNotification() {
		return c.acceptNotification(ctx, r)
	}
	if r.Method != protocol.Initialize && c.agent.known.Load() == nil {
		return jsonrpc.Fail(errNotInitialized(r.Method))
	}
	accept := methodOf(r.Method).accept
	if accept == nil {
		accept = (*connection).acceptPassed
	}
	return c.withoutStorePath(c.withEvent(r, accept(c, ctx, r)))
}

// acceptNotification handles session/cancel at once and passes other notifications to the backend.
func (c *connection) acceptNotification(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	given, rest, err := protocol.TakeSessionID(r.Params)
	if err != nil {
		return nil
	}
	id := sessionstore.ID(given)
	if r.Method == protocol.SessionCancel {
		c.cancel(id, rest)
		return nil
	}
	switch _, _, isChild := splitChild(id); {
	case isChild, !c.agent.isKnown(), methodOf(r.Method).shape != nil,
		protocol.IsRefused(r.Method):
		// a request sent as a notification is ignored
		return nil
	case !c.agent.grants.allows(r.Method), namesSetup(r.Params):
		return c.refuse(r, id)
	case id == "":
		c.agent.backend.Notify(ctx, r.Method, r.Params)
		return nil
	case c.home.queues.Find(id) == nil:
		return nil
	}
	return c.inSession(ctx, id, r.Method, nil, func(s *session) jsonrpc.Work {
		s.WithBackend(func() { s.backend.Notify(ctx, r.Method, rest()) })
		return nil
	})
}

// cancel serves session/cancel, which does not queue. A client that has the session open, or is
// opening it, ends all turns, any other one only its own. rest returns the params without the id.
func (c *connection) cancel(id sessionstore.ID, rest func() backend.Raw) {
	of, child, isChild := splitChild(id)
	if !isChild {
		of = id
	}
	q := c.home.queues.Find(of)
	if q == nil {
		return
	}
	s := q.Active()
	views := q.IsOpening(c) || s != nil && s.viewers.Has(c)
	if s != nil && views {
		s.viewers.Stop(c)
	}
	switch {
	case !isChild:
		q.Cancel(rest(), func(sender *connection) bool { return views || sender == c })
	case s != nil && views:
		s.cancelChild(child, rest())
	}
}

// acceptPassed accepts a request that the adapter does not serve: it passes it to the backend's
// session, or else to the backend, at once if nothing has to be waited for or checked.
func (c *connection) acceptPassed(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	a := c.agent
	if r.Method == protocol.SessionCancel || protocol.IsRefused(r.Method) {
		return nil
	}
	if !a.grants.allows(r.Method) &&
		!(r.Method == protocol.Authenticate && namesNoSignIn(r.Params)) {
		return c.refuse(r, sessionOf(r))
	}
	if shape := methodOf(r.Method).shape; shape != nil {
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
	if id != "" && c.home.queues.Find(id) != nil {
		return c.inSession(ctx, id, r.Method, check, func(s *session) (work jsonrpc.Work) {
			params := rest()
			s.WithBackend(func() { work = s.backend.Call(ctx, r.Method, params) })
			return s.withSettingTold(c, r.Method, params, work)
		})
	}
	if refuse := c.refuseUnopened(ctx, id, r.Method); refuse != nil {
		return refuse
	}
	if a.isKnown() && check == nil {
		return a.callBackend(ctx, r)
	}
	return func() (json.RawMessage, error) {
		err := c.initialized(ctx)
		if err == nil && check != nil {
			err = check(ctx)
		}
		if err != nil {
			return nil, protocolError(err)
		}
		return run(a.callBackend(ctx, r), r.Method)
	}
}

// inSession has a message served by the session with this id, if the client has it open: at once if
// the message waits for no other one and check is nil, otherwise once check allows it.
func (c *connection) inSession(
	ctx context.Context, id sessionstore.ID, method string, check func(context.Context) error,
	serve func(*session) jsonrpc.Work,
) jsonrpc.Work {
	at := c.home.queues.Ticket(id, turns.Ordinary, c)
	begin := func() jsonrpc.Work {
		defer at.Release()
		if s := c.viewed(at.Queue); s != nil {
			return serve(s)
		}
		return func() (json.RawMessage, error) { return nil, c.agent.whyInactive(ctx, id) }
	}
	if at.Holds() && check == nil {
		return begin()
	}
	return func() (json.RawMessage, error) {
		defer at.Release()
		err := at.Acquire(ctx)
		if err == nil && check != nil {
			err = check(ctx)
		}
		if err != nil {
			return nil, protocolError(err)
		}
		return run(begin(), method)
	}
}

// viewed returns the active session of a queue if the client has it open, otherwise nil.
func (c *connection) viewed(q *queue) *session {
	if s := q.Active(); s != nil && s.viewers.Has(c) {
		return s
	}
	return nil
}

// refuseUnopened returns work if a request that names no active session is not passed to the
// backend: ACP defines the method on sessions, or the id can only be the backend's own and the
// client may not use it. Requests about child sessions are not passed on, nor those of a client
// without Extensions that name no session although the method needs one.
func (c *connection) refuseUnopened(
	ctx context.Context, id sessionstore.ID, method string,
) jsonrpc.Work {
	g := c.agent.grants
	if id == "" && !g.Extensions && strings.HasPrefix(method, protocol.SessionPrefix) {
		return jsonrpc.Fail(strictjson.Refuse(
			strictjson.NewViolation(protocol.SessionID, nil, strictjson.Required)))
	}
	_, _, isChild := splitChild(id)
	if isChild || id != "" && (!g.Sessions || strings.HasPrefix(method, "session/set_")) {
		return func() (json.RawMessage, error) { return nil, c.agent.whyInactive(ctx, id) }
	}
	return nil
}

// whyInactive returns the error for a session that is not open in the client: it is unknown, or has
// to be loaded first.
func (a *agent) whyInactive(ctx context.Context, id sessionstore.ID) error {
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

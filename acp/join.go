package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/turns"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// The turns of a remote client outlive its connection: the connection's agent goes on without a
// client until they end or the grace has passed. If another connection of the same principal loads
// the session in that time, its agent passes the session's requests on to the agent that runs the
// session, and the session's outlet leads to the new client.

// lasting reports whether turns outlive the connection.
func (a *agent) lasting() bool { return a.grace > 0 }

// sessionOf returns the id of the session that must be open for the request, or "".
func sessionOf(r *jsonrpc.Request) (id sessionstore.ID) {
	if r.Method == protocol.SessionFork {
		return ""
	}
	_ = json.Unmarshal(strictjson.Find(r.Params, protocol.SessionID), &id)
	if of, _, ok := splitChild(id); ok {
		return of
	}
	return id
}

// opens reports whether a method opens a stored session.
func opens(method string) bool {
	return method == protocol.SessionLoad || method == protocol.SessionResume
}

// acceptLasting accepts a request about a session that another agent runs or another client has
// open. ok is false if neither is the case. It is called on the read loop.
func (a *agent) acceptLasting(ctx context.Context, r *jsonrpc.Request) (_ jsonrpc.Work, ok bool) {
	id := sessionOf(r)
	if id == "" || !a.init.done() {
		return nil, false
	}
	if h := a.elsewhere(id, r.Method); h != nil {
		return a.forward(ctx, h, id, r), true
	}
	if a.isTaken(id, r.Method, a) {
		return rejectTaken(id, r), true
	}
	return nil, false
}

// elsewhere returns the other agent that runs a session. It returns nil if a runs it, or if no
// agent does and a may open it. The caller ends its use.
func (a *agent) elsewhere(id sessionstore.ID, method string) *agent {
	if h := a.joined[id]; h != nil {
		if h.queues.Find(id) != nil && a.owner.use(h) {
			return h
		}
		delete(a.joined, id)
	}
	if !opens(method) || a.queues.Find(id) != nil {
		return nil
	}
	for _, h := range a.owner.all() {
		if h != a && h.init.owner() == a.init.owner() && h.isJoinable(id) && a.owner.use(h) {
			a.joined[id] = h
			return h
		}
	}
	return nil
}

// forward passes a request from a's client to h. The caller has begun a use of h, which forward
// ends.
func (a *agent) forward(
	ctx context.Context, h *agent, id sessionstore.ID, r *jsonrpc.Request,
) (work jsonrpc.Work) {
	if h.isTaken(id, r.Method, a) {
		work = rejectTaken(id, r)
	} else {
		work = h.accept(ctx, r, a)
	}
	done := func() { a.owner.unuse(h) }
	switch {
	case !r.IsNotification():
		r.AfterResponse(done)
		return work
	case work == nil:
		done()
		return nil
	}
	return func() (json.RawMessage, error) {
		defer done()
		return work()
	}
}

// rejectTaken rejects a request about a session that another client has open.
func rejectTaken(id sessionstore.ID, r *jsonrpc.Request) jsonrpc.Work {
	if r.IsNotification() {
		return nil
	}
	return jsonrpc.Fail(stateError(jsonrpc.CodeInvalidRequest, backend.ErrFenced.Error(),
		reasonData{Reason: "fenced", SessionID: string(id)}))
}

// activeSession returns the active session with the given id, or nil.
func (a *agent) activeSession(id sessionstore.ID) *session {
	if q := a.queues.Find(id); q != nil {
		return q.Active()
	}
	return nil
}

// isJoinable reports whether the session is in a turn, or has lost its client.
func (a *agent) isJoinable(id sessionstore.ID) bool {
	s := a.activeSession(id)
	return s != nil && (len(s.queue.Unanswered()) > 0 || s.host.outlet.Client() == nil)
}

// isTaken reports whether a client other than from's has the session open. From's client must then
// load it before it sends other requests.
func (a *agent) isTaken(id sessionstore.ID, method string, from *agent) bool {
	s := a.activeSession(id)
	return s != nil && !opens(method) && !s.host.outlet.HeldBy(from)
}

// claim gives the session with the given id, if it is active, to from's client, which is loading
// it.
func (a *agent) claim(id sessionstore.ID, from *agent) {
	if s := a.activeSession(id); s != nil {
		a.keep(s, s.host.outlet.Claim(from), a.grace)
	}
}

// leave takes all sessions away from from's client, whose connection has ended.
func (p *principal) leave(from *agent) {
	for _, a := range p.all() {
		for _, s := range a.queues.Active() {
			a.keep(s, s.host.outlet.Leave(from), from.graceNow())
		}
	}
}

// graceNow returns how long turns continue if the client disconnects now.
func (a *agent) graceNow() time.Duration {
	if a.serving.Err() != nil {
		return 0
	}
	return a.grace
}

// keepIfLeft keeps s if from's client has left while it was opening s.
func (s *session) keepIfLeft(from *agent) {
	if !s.agent.lasting() {
		return
	}
	to, back := s.host.outlet.Current()
	if to != nil && to.left.Load() {
		back = s.host.outlet.Leave(to)
	} else if to != nil {
		return
	}
	s.agent.keep(s, back, from.graceNow())
}

// keep waits up to the given time for the turns of s to end, then closes s, which has lost its
// client. It stops if another client opens s and so closes back. It does nothing if back is nil: s
// still has its client.
func (a *agent) keep(s *session, back <-chan struct{}, during time.Duration) {
	if back == nil {
		return
	}
	a.tasks.Go(func() {
		grace := time.After(during)
		for over := during == 0; !a.closeUnheld(s, over); {
			running := s.queue.Unanswered()
			if len(running) == 0 { // the last one has just ended
				continue
			}
			select {
			case <-running[0].Done():
			case <-back:
				return
			case <-a.base.Done():
				return
			case <-grace:
				over = true
			}
		}
	})
}

// closeUnheld closes s once earlier requests are served, unless a client has opened it. If a turn
// is still running, closeUnheld ends it once the grace has passed; before that it leaves s open and
// reports false.
func (a *agent) closeUnheld(s *session, over bool) bool {
	at := a.queues.Ticket(s.id, turns.Lifecycle)
	defer at.Release()
	if at.Acquire(a.base) != nil || at.Queue.Active() != s || s.host.outlet.Client() != nil {
		return true
	}
	if !over && len(at.Queue.Unanswered()) > 0 {
		return false
	}
	if at.Queue.EndTurns(a.base, backend.ErrCancelled) == nil {
		a.closeSession(a.base, s, nil)
	}
	return true
}

// promptLasting returns the work for the prompt of t, which from's client sent and which may
// outlive its connection. ctx is the request's context; leave ends the turn's context; finish is
// called when the turn has ended.
func (a *agent) promptLasting(
	ctx context.Context, r *jsonrpc.Request, from *agent, at *ticket, t *turns.Turn, p promptParams,
	leave context.CancelCauseFunc, finish func(),
) jsonrpc.Work {
	left := false // set by the work, before the functions below are called
	var ended outcome
	r.BeforeResponse(func(result json.RawMessage, err error) (json.RawMessage, error) {
		if left {
			return result, err
		}
		ended.result, ended.err = t.Decide(result, err)
		return ended.result, ended.err
	})
	r.AfterResponse(func() {
		if left {
			return
		}
		finish()
		// The connection may be lost without either side having noticed.
		if s := at.Queue.Active(); s != nil && !s.host.outlet.HeldBy(from) {
			a.tasks.Go(func() { s.tellEnd(ended) })
		}
	})
	return func() (json.RawMessage, error) {
		done := make(chan outcome, 1)
		a.tasks.Go(func() {
			o := outcome{err: tasks.ErrPanicked}
			defer func() { done <- o }()
			o.result, o.err = a.prompt(at, t, p)
		})
		select {
		case o := <-done:
			return o.result, o.err
		case <-ctx.Done():
		}
		if a.clientOf(at.Queue).serving.Err() != nil {
			leave(jsonrpc.ErrClosed)
		} else if t.Cause() == nil {
			left = true
			a.tasks.Go(func() { a.finishLeft(at, t, <-done, finish) })
			return nil, jsonrpc.ErrClosed
		}
		o := <-done
		return o.result, o.err
	}
}

// clientOf returns the agent whose client receives the messages of q's session, or a if no client
// does.
func (a *agent) clientOf(q *queue) *agent {
	if s := q.Active(); s != nil {
		return cmp.Or(s.host.outlet.Client(), a)
	}
	return a
}

// finishLeft ends a turn whose response nobody waits for.
func (a *agent) finishLeft(at *ticket, t *turns.Turn, o outcome, finish func()) {
	o.result, o.err = t.Decide(o.result, o.err)
	finish()
	if s := at.Queue.Active(); s != nil {
		s.tellEnd(o)
	}
}

// tellEnd tells the client that has joined s how the turn ended, because that client gets no
// response for it. A client that is about to join is told after the history.
func (s *session) tellEnd(o outcome) {
	ended := map[string]any{"stopReason": stopReason(o)}
	if o.err != nil {
		ended = map[string]any{"error": o.err.Error()}
	}
	ctx := s.agent.base
	err := s.beginUpdate(ctx)
	if err == nil {
		defer s.endUpdate()
		err = s.show(ctx, backend.NewUpdate(map[string]any{
			"sessionUpdate": sessionstore.SessionInfoUpdate,
			"_meta":         map[string]any{"acp-agent": map[string]any{"turn": ended}}}))
	}
	if err != nil {
		s.agent.log.Debug("end of a turn not sent", "session", s.id, "error", err)
	}
}

// joins reports whether the load joins the running turn of a session without a client. It does if
// it asks for the same roots and MCP servers.
func (l *load) joins() bool {
	s := l.previous
	if s == nil || l.front == nil || s.host.outlet.Client() != nil ||
		len(l.at.Queue.Unanswered()) == 0 {
		return false
	}
	same := func(a, b mcpclient.Config) bool {
		a.Policy = b.Policy // which is not the client's
		return reflect.DeepEqual(a, b)
	}
	return (!l.params.listed || l.params.roots.Equal(s.params.roots)) &&
		slices.EqualFunc(l.params.servers, s.params.servers, same)
}

// join shows the client the history of the session up to now. Until the response is sent, no update
// is shown or recorded.
func (l *load) join(ctx context.Context) (_ *session, _ json.RawMessage, err error) {
	a, s := l.agent, l.previous
	if err := s.beginUpdate(ctx); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			s.endUpdate()
		}
	}()
	if err := s.record.current().Flush(ctx); err != nil {
		return nil, nil, err
	}
	show := func(ctx context.Context, u backend.Update) error {
		return l.front.sendUpdate(ctx, s.address, u, forAnother)
	}
	if l.cause == backend.Load {
		for u, err := range sessionstore.Joined(a.options.Store.History(ctx, s.host.stored)) {
			if err != nil {
				return nil, nil, err
			}
			l.rate.wait(ctx)
			if err := show(ctx, u); err != nil {
				return nil, nil, err
			}
		}
	}
	states, err := a.options.Store.States(ctx, s.host.stored)
	if err != nil {
		return nil, nil, err
	}
	l.joined = func() {
		defer s.endUpdate()
		for _, u := range states { // they are newer than those in the response
			if err := show(a.base, s.host.announce(u)); err != nil {
				a.log.Debug("update not sent", "session", s.id, "error", err)
			}
		}
		s.host.outlet.Attach(l.front)
	}
	running := json.RawMessage(`{"turn":{"running":true}}`)
	if len(l.at.Queue.Unanswered()) == 0 { // it has just ended
		running = json.RawMessage(`{}`)
	}
	meta := strictjson.Set(members(s.result)["_meta"], "acp-agent", running)
	return s, strictjson.Set(s.result, "_meta", meta), nil
}

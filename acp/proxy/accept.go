package proxy

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

const updateMethod = "session/update"

// message is a request or notification of the child, without its session's id.
type message struct {
	ctx    context.Context
	method string
	params backend.Raw
	// answer takes the second half of a request, once; nil for a notification.
	answer chan<- backend.Work
}

// accept takes what the child sends, on the read loop: while the client does not take an update, nothing
// more is read.
func (a *agent) accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	id, params, named := sessionOf(r.Params)
	if !named {
		return a.pass(ctx, r)
	}
	m := message{ctx: ctx, method: r.Method, params: params}
	if r.IsNotification() {
		a.route(id, m)
		return nil
	}
	answer := make(chan backend.Work, 1)
	m.answer = answer
	a.route(id, m)
	return func() (json.RawMessage, error) {
		select {
		case work := <-answer:
			return work()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// sessionOf takes the session's id off params. It reports whether there was one; if not, params are to
// be passed on as they are.
func sessionOf(params json.RawMessage) (id string, rest json.RawMessage, named bool) {
	value, rest, err := strictjson.Take(params, "sessionId")
	if err != nil || value == nil || json.Unmarshal(value, &id) != nil || string(value) == "null" {
		return "", nil, false
	}
	return id, rest, true
}

// pass passes on what names no session.
func (a *agent) pass(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	a.behind.wait(ctx)
	if !r.IsNotification() {
		return jsonrpc.Work(a.client.Call(ctx, r.Method, r.Params))
	}
	if err := a.client.Notify(ctx, r.Method, r.Params); err != nil {
		a.dropped(r.Method, err)
	}
	return nil
}

// route gives m to its session, or holds it, or refuses it.
func (a *agent) route(id string, m message) {
	l, err := a.routes.find(id, m)
	switch {
	case err != nil:
		a.refuse(m, err)
	case l != nil:
		l.deliver(m)
	}
}

// refuse says that m reaches nobody.
func (a *agent) refuse(m message, err error) {
	if m.answer != nil {
		m.answer <- failed(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "sessionId: %v", err))
		return
	}
	a.dropped(m.method, err)
}

// dropped logs a notification that reaches nobody. What comes late for a session that has ended is no
// surprise.
func (a *agent) dropped(method string, err error) {
	if errors.Is(err, backend.ErrClosed) || errors.Is(err, errUnknownSession) || errors.Is(err, backend.ErrTurnOver) {
		a.log.Debug("a notification of the agent came too late", "method", method, "error", err)
		return
	}
	a.log.Warn("a notification of the agent was not passed on", "method", method, "error", err)
}

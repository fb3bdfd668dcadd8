package acp

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/turns"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
)

// outlet sends the messages of a session to the client that has it open.
type outlet struct {
	*turns.Outlet[*agent]
	agent *agent // runs the session; the backend knows its client
}

// newOutlet returns the outlet of a session that a runs and the client of to opens. If turns end
// with the connection, it always leads to a's client.
func newOutlet(a, to *agent) *outlet {
	if a.lasting() {
		return &outlet{turns.NewOutlet(to), a}
	}
	return &outlet{turns.FixedOutlet(a), a}
}

// HasLeft implements [turns.Client].
func (a *agent) HasLeft() bool { return a.left.Load() }

// notify sends the client a notification.
func (o *outlet) notify(ctx context.Context, method string, params backend.Raw) error {
	return o.Reach(ctx, func(ctx context.Context, to *agent) error {
		return to.conn.Notify(ctx, method, params)
	})
}

// update sends the client an update of the session, if the client takes it.
func (o *outlet) update(
	ctx context.Context, session address, u backend.Update, when occasion,
) error {
	return o.Reach(ctx, func(ctx context.Context, to *agent) error {
		if to != o.agent { // the backend does not know this client
			when = forAnother
		}
		return to.sendUpdate(ctx, session, u, when)
	})
}

// call sends the client a request. A question to the user that no client has answered is asked
// again in the next one that has the session open.
func (o *outlet) call(ctx context.Context, method string, params backend.Raw) backend.Work {
	send := func(ctx context.Context, to *agent) backend.Work {
		if o.agent.lasting() { // it may not be the client for which the request was checked
			if err := to.checkMethod(method, params); err != nil {
				return jsonrpc.Fail(err)
			}
		}
		params := params
		if to != o.agent && method == protocol.RequestPermission {
			params = to.clientCapabilities().withoutContent(params, "toolCall")
		}
		return backend.Work(to.conn.Call(ctx, method, params))
	}
	if method == protocol.RequestPermission || method == protocol.ElicitationCreate {
		return o.Ask(ctx, send)
	}
	return o.Call(ctx, send)
}

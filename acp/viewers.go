package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// viewers are the clients that have a session open.
type viewers struct {
	*transcript.Audience[*connection]
	adapter *adapter // runs the session; its backend knows the client of its connection
}

// newViewers returns the viewers of a session that a runs, of which first opens it.
func newViewers(a *adapter, first *connection, session address.Address) *viewers {
	v := &viewers{adapter: a}
	o := turns.ViewerOptions[*connection]{Go: a.tasks.Go, Slow: v.dropped}
	if a.home.isShared() { // otherwise dropping the client would end the session
		o.Patience = a.options.tuning.SlowViewer
	}
	v.Audience = &transcript.Audience[*connection]{
		Viewers: turns.NewViewers(first, o), Address: session,
		Shown: tasks.NewMutex(transcript.Shown{}),
		Deliver: func(to *connection, u backend.Update, params json.RawMessage) error {
			return to.deliver(session, u, params, to.occasionFrom(a), to.TryNotify)
		},
		ShowsNotices: func(c *connection) bool {
			return c.clientCapabilities().declares(protocol.Notices)
		},
	}
	return v
}

// dropped tells a client that it was too slow. Turns go on without a viewer for a while.
func (v *viewers) dropped(c *connection) {
	v.adapter.log.Info("a client is too slow to be shown the session", "session", v.Address.ID)
	c.tell(v.Address, "\n\nThis window took too long to read, so the rest is not shown here. "+
		"Load the session again to see it.\n")
	if s := v.adapter.home.session(v.Address.ID); s != nil {
		s.closeWhenIdle(c.graceNow())
	}
}

// notify sends the viewers a notification.
func (v *viewers) notify(ctx context.Context, method string, params backend.Raw) {
	v.Send(ctx, nil, len(params), func(to *connection) error {
		return to.TryNotify(method, params)
	})
}

// offers returns nil if a viewer offers a method of clients.
func (v *viewers) offers(method string, params backend.Raw) error {
	clients := v.Clients()
	if len(clients) == 0 {
		clients = []*connection{v.adapter.connection}
	}
	var err error
	for _, c := range clients {
		if err = c.checkMethod(method, params); err == nil {
			return nil
		}
	}
	return err
}

// call sends a request to one viewer that offers it.
func (v *viewers) call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return v.Call(ctx,
		func(to *connection) error { return to.checkMethod(method, params) },
		func(ctx context.Context, to *connection) backend.Work {
			return to.Call(ctx, method, params)
		})
}

// tell tells the client something about a session, even if much waits for it.
func (c *connection) tell(session address.Address, message string) {
	// An error means that the connection has ended.
	_ = c.deliver(session, backend.Warning(backend.Text(message)), nil, forAnother, c.ForceNotify)
}

package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// viewers are the clients that have a session open.
type viewers struct {
	*turns.Viewers[*connection]
	adapter *adapter // runs the session; its backend knows the client of its connection
	address address
	shown   tasks.Mutex[shown] // used while an update is shown, so that all see the same order
	calls   calls.Calls
}

// newViewers returns the viewers of a session that a runs, of which first opens it.
func newViewers(a *adapter, first *connection, session address) *viewers {
	v := &viewers{adapter: a, address: session, shown: tasks.NewMutex(shown{})}
	o := turns.ViewerOptions[*connection]{Go: a.tasks.Go, Slow: v.dropped}
	if a.home.isShared() { // otherwise dropping the client would end the session
		o.Patience = a.options.tuning.SlowViewer
	}
	v.Viewers = turns.NewViewers(first, o)
	return v
}

// dropped tells a client that it was too slow. Turns go on without a viewer for a while.
func (v *viewers) dropped(c *connection) {
	v.adapter.log.Info("a client is too slow to be shown the session", "session", v.address.id)
	c.tell(v.address, "\n\nThis window took too long to read, so the rest is not shown here. "+
		"Load the session again to see it.\n")
	if s := v.adapter.home.session(v.address.id); s != nil {
		s.closeWhenIdle(c.graceNow())
	}
}

// notify sends the viewers a notification.
func (v *viewers) notify(ctx context.Context, method string, params backend.Raw) {
	v.Send(ctx, nil, len(params), func(to *connection) error {
		return to.TryNotify(method, params)
	})
}

// show sends the viewers but except an update of the session, if they take it. It is encoded once,
// and not recorded.
func (v *viewers) show(ctx context.Context, except *connection, u backend.Update) {
	params := v.address.params(u)
	v.Send(ctx, except, len(u.Raw), func(to *connection) error {
		return to.deliver(v.address, u, params, to.occasionFrom(v.adapter), to.TryNotify)
	})
}

// mark shows the viewers but except an update that only says something in _meta, for clients that
// know it.
func (v *viewers) mark(ctx context.Context, except *connection, name string, value any) {
	says := json.RawMessage(`{"sessionUpdate":"session_info_update"}`)
	v.show(ctx, except, backend.NewUpdate(withMeta(says, name, backend.Encode(value))))
}

// tellGone tells the user what is lost because the session is gone.
func (v *viewers) tellGone(ctx context.Context, err error, lost string) {
	what := "\n\nThis session was opened in another window. " + lost +
		" Load the session again to continue it here.\n"
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		what = "\n\nThis session was deleted in another window. " + lost + "\n"
	}
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	v.show(ctx, nil, backend.Warning(backend.Text(what)))
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
func (c *connection) tell(session address, message string) {
	// An error means that the connection has ended.
	_ = c.deliver(session, backend.Warning(backend.Text(message)), nil, forAnother, c.ForceNotify)
}

// withMeta returns an object with a member of _meta.acp-agent.
func withMeta(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	return strictjson.SetAt(object, value, "_meta", "acp-agent", name)
}

package acp

import (
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// All viewers of a session are connections.

// newViewers returns the viewers of a session that a runs, of which first opens it. The backend
// knows only the client of a's connection.
func newViewers(
	a *adapter, first *connection, session address.Address,
) *transcript.Audience {
	o := turns.ViewerOptions{Go: a.tasks.Go,
		Slow: func(c turns.Client) { a.drop(c.(*connection), session) }}
	if a.home.isShared() { // otherwise dropping the client would end the session
		o.Patience = a.options.tuning.SlowViewer
	}
	return &transcript.Audience{
		Viewers: turns.NewViewers(first, o), Address: session,
		Shown: tasks.NewMutex(transcript.Shown{}),
		Deliver: func(to turns.Client, u backend.Update, params json.RawMessage) error {
			c := to.(*connection)
			return c.deliver(session, u, params, c.occasionFrom(a), c.TryNotify)
		},
		ShowsNotices: func(c turns.Client) bool {
			return c.(*connection).clientCapabilities().declares(protocol.Notices)
		},
	}
}

// drop tells a client that it was too slow, so that it does not view the session any more. Turns go
// on without a viewer for a while.
func (a *adapter) drop(c *connection, session address.Address) {
	a.log.Info("a client is too slow to be shown the session", "session", session.ID)
	c.tell(session, "\n\nThis window took too long to read, so the rest is not shown here. "+
		"Load the session again to see it.\n")
	if s := a.home.session(session.ID); s != nil {
		s.closeWhenIdle(c.graceNow())
	}
}

// tell tells the client something about a session, even if much waits for it.
func (c *connection) tell(session address.Address, message string) {
	// An error means that the connection has ended.
	_ = c.deliver(session, backend.Warning(backend.Text(message)), nil, forAnother, c.ForceNotify)
}

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

// viewers are the clients that have a session open.
type viewers = transcript.Audience[*connection]

// newViewers returns the viewers of a session that a runs, of which first opens it. The backend
// knows only the client of a's connection.
func newViewers(a *adapter, first *connection, session address.Address) *viewers {
	o := turns.ViewerOptions[*connection]{Go: a.tasks.Go,
		Slow: func(c *connection) { a.drop(c, session) }}
	if a.home.isShared() { // otherwise dropping the client would end the session
		o.Patience = a.options.tuning.SlowViewer
	}
	return &viewers{
		Viewers: turns.NewViewers(first, o), Address: session,
		Shown: tasks.NewMutex(transcript.Shown{}),
		Deliver: func(to *connection, u backend.Update, params json.RawMessage) error {
			return to.deliver(session, u, params, to.occasionFrom(a), to.TryNotify)
		},
		ShowsNotices: func(c *connection) bool {
			return c.clientCapabilities().declares(protocol.Notices)
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

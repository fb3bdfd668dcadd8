package acp

import (
	"time"

	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// home has the sessions that clients of a principal have open, and keeps the requests about each
// session in order, whichever connection they come over. The remote connections of a principal
// share a home, whose turns outlive a connection. Any other connection has its own.
type home struct {
	owner  *principal
	queues turns.Queues[session]
	grace  time.Duration // how long turns outlive their connection, 0 if they end with it
}

type (
	queue  = turns.Queue[session]
	ticket = turns.Ticket[session]
)

// isShared reports whether several connections may view a session of the home, and its turns
// outlive them.
func (h *home) isShared() bool { return h.grace > 0 }

// session returns the active session with the given id, or nil.
func (h *home) session(id sessionstore.ID) *session {
	if q := h.queues.Find(id); q != nil {
		return q.Active()
	}
	return nil
}

// leave takes a client whose connection has ended from the viewers of all sessions.
func (h *home) leave(c *connection) {
	c.left.Store(true)
	for _, s := range h.queues.Active() {
		s.leave(c)
	}
}

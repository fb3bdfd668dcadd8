package acp

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/internal/servers"
	"github.com/acp-agent/acp-agent/internal/permission"
)

// conversation is what lasts as long as a session is open for its user, however often it is opened
// again: the sessions that replace one another share it.
type conversation struct {
	servers *servers.Set // of MCP
	// sessions counts those that share it: the active one, and one that is being opened.
	sessions atomic.Int32
	// freeSlot frees its place among the active sessions of its principal.
	freeSlot func()

	// What the user has allowed, and was told or is to be told:
	allowed *permission.Session
	exceeds sync.Map                      // budgets; see budget.Budgets
	notice  atomic.Pointer[pendingNotice] // nil until a session is about to become active
	warned  atomic.Bool                   // see transcript.Transcript
}

// conversation returns that of the previous session, or begins one. The new session leaves it.
func (o opening) conversation() (*conversation, error) {
	if o.previous != nil {
		o.previous.conversation.sessions.Add(1)
		return o.previous.conversation, nil
	}
	a, id, owner := o.adapter, o.ticket.Queue.ID, o.adapter.home.owner
	if err := owner.take(sessionSlot, a); err != nil {
		return nil, err
	}
	c := &conversation{servers: a.newServers(id), allowed: permission.NewSession(string(id)),
		freeSlot: func() { owner.release(sessionSlot, a) }}
	c.sessions.Store(1)
	return c, nil
}

// leave takes a session from those that share the conversation, which ends with the last.
func (c *conversation) leave(ctx context.Context) error {
	if c.sessions.Add(-1) > 0 {
		return nil
	}
	defer c.freeSlot() // at the end: the adapter may end then
	return c.servers.Close(ctx)
}

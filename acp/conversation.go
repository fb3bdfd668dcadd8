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
	// freeSlot frees its place among the active sessions of its principal, once.
	freeSlot func()

	// What the user has allowed, and was told or is to be told:
	allowed *permission.Session
	exceeds sync.Map                      // budgets; see budget.Budgets
	notice  atomic.Pointer[pendingNotice] // nil until a session is about to become active
	warned  atomic.Bool                   // see transcript.Transcript
}

// conversation returns that of the previous session, or begins one.
func (o opening) conversation() (*conversation, error) {
	if o.previous != nil {
		return o.previous.conversation, nil
	}
	a, id, owner := o.adapter, o.ticket.Queue.ID, o.adapter.home.owner
	if err := owner.take(sessionSlot, a); err != nil {
		return nil, err
	}
	return &conversation{servers: a.newServers(id), allowed: permission.NewSession(string(id)),
		freeSlot: sync.OnceFunc(func() { owner.release(sessionSlot, a) })}, nil
}

// end ends the conversation: no session goes on with it.
func (c *conversation) end(ctx context.Context) error {
	defer c.freeSlot()
	return c.servers.Close(ctx)
}

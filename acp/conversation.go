package acp

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/internal/servers"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// conversation is what lasts as long as a session is open for its user, however often it is opened
// again: the sessions that replace one another share it.
type conversation struct {
	adapter  *adapter        // runs the session
	id       sessionstore.ID // the client's
	servers  *servers.Set    // of MCP
	freeSlot func()          // frees its place among the active sessions of its principal
	ended    sync.Once

	// What the user has allowed, and was told or is to be told:
	allowed *permission.SessionGrants
	exceeds sync.Map                      // budgets; see budget.Budgets
	notice  atomic.Pointer[pendingNotice] // nil until a session is about to become active
	warned  atomic.Bool                   // see transcript.Transcript
}

// conversation returns that of the previous session, or begins one.
func (o opening) conversation() (*conversation, error) {
	if o.previous != nil {
		return o.previous.conversation, nil
	}
	freeSlot, err := o.adapter.take(sessionSlot)
	if err != nil {
		return nil, err
	}
	id := o.ticket.Queue.ID
	return &conversation{adapter: o.adapter, id: id,
		servers: o.adapter.newServers(id), freeSlot: freeSlot,
		allowed: permission.NewSessionGrants(string(id))}, nil
}

// end ends the conversation, once: no session goes on with it.
func (c *conversation) end(ctx context.Context) {
	c.ended.Do(func() {
		defer c.freeSlot() // at the end: the adapter may end then
		c.adapter.closeAll(ctx, c.id, c.servers.Close)
	})
}

package acp

import (
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/internal/servers"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// conversation is what lasts as long as a session is open for its user, however often it is opened
// again: the sessions that replace one another share it. It counts as an active session of its
// principal until the last of them is freed, and so does one that is opened in vain.
type conversation struct {
	adapter *adapter        // runs the session
	id      sessionstore.ID // the client's
	queue   *queue
	servers *servers.Set // of MCP
	// freeSlot frees its place among the active sessions, once.
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
	a, id, owner := o.adapter, o.at.Queue.ID, o.adapter.home.owner
	if err := owner.take(sessionSlot, a); err != nil {
		return nil, err
	}
	return &conversation{adapter: a, id: id, queue: o.at.Queue, servers: a.newServers(id),
		freeSlot: sync.OnceFunc(func() { owner.release(sessionSlot, a) }),
		allowed:  permission.NewSession(string(id))}, nil
}

package proxy

import (
	"context"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// outbox is the notifications for a child that does not read fast enough. They wait in order, up to a limit.
type outbox struct {
	serving  context.Context // ends with the connection
	draining sync.WaitGroup

	mu    sync.Mutex
	held  []notification
	bytes int
	busy  bool // a goroutine sends what is held
}

type notification struct {
	method string
	params backend.Raw
}

// post sends the child a notification, in the order of the calls and without waiting. One that leaves too
// many unread is ended: none is dropped behind the client's back.
func (a *agent) post(method string, params backend.Raw) {
	o := &a.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.busy {
		err := a.conn.Post(method, params)
		if err == nil {
			return
		}
		if !errors.Is(err, jsonrpc.ErrQueueFull) {
			a.log.Warn("a notification did not reach the agent", "method", method, "error", err)
			return
		}
	}
	if len(o.held) == a.options.MaxHeld || o.bytes+len(params) > a.options.MaxHeldBytes {
		a.fail(errNotReading)
		return
	}
	o.held = append(o.held, notification{method, params})
	o.bytes += len(params)
	if !o.busy {
		o.busy = true
		o.draining.Go(a.drain)
	}
}

// drain sends what is held, until nothing is.
func (a *agent) drain() {
	o := &a.outbox
	for {
		o.mu.Lock()
		if len(o.held) == 0 {
			o.busy = false
			o.mu.Unlock()
			return
		}
		n := o.held[0]
		o.held = o.held[1:]
		o.bytes -= len(n.params)
		o.mu.Unlock()
		if err := a.conn.Notify(o.serving, n.method, n.params); err != nil {
			a.log.Warn("a notification did not reach the agent", "method", n.method, "error", err)
		}
	}
}

// cancel sends the child a session/cancel, whatever waits to be read.
func (a *agent) cancel(params backend.Raw) {
	if err := a.conn.Force("session/cancel", params); err != nil {
		a.log.Debug("a cancel did not reach the agent", "error", err)
	}
}

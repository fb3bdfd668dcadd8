package mcpclient

import (
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"
)

// pendingRequests limits the requests of a server whose answers it has not read yet. The MCP SDK
// handles every request that it reads at once and keeps it until the answer is written, so a server
// that asks without reading would fill our memory.
type pendingRequests struct {
	limit   int
	timeout time.Duration // how long a server may read no answers

	mu      sync.Mutex
	pending map[jsonrpc.ID]bool
	removed chan struct{} // closed and replaced when a request is removed
}

func newPendingRequests(l limits) *pendingRequests {
	return &pendingRequests{
		limit: l.MaxRequests, timeout: l.SettleMax,
		pending: map[jsonrpc.ID]bool{}, removed: make(chan struct{}),
	}
}

// wait waits until there is room for one more request, or done is closed. It fails if the server
// reads no answers in time.
func (p *pendingRequests) wait(done <-chan struct{}) error {
	var late <-chan time.Time
	for {
		p.mu.Lock()
		full, removed := len(p.pending) >= p.limit, p.removed
		p.mu.Unlock()
		if !full {
			return nil
		}
		if late == nil {
			late = time.After(p.timeout)
		}
		select {
		case <-removed:
		case <-late:
			return &limitError{fmt.Sprintf("it sent %d requests and read no answers within %v",
				p.limit, p.timeout)}
		case <-done:
			return nil
		}
	}
}

// add records a request. The MCP SDK rejects a request whose id is in use; it counts together with
// the other.
func (p *pendingRequests) add(id jsonrpc.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending[id] = true
}

// remove records that the server has read an answer, or never will.
func (p *pendingRequests) remove(id jsonrpc.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, id)
	close(p.removed)
	p.removed = make(chan struct{})
}

// openRequests are our requests that a server has not answered, so that answers with another id
// than they should have find theirs.
type openRequests struct {
	mu  sync.Mutex
	ids map[jsonrpc.ID]bool
}

func newOpenRequests() *openRequests { return &openRequests{ids: map[jsonrpc.ID]bool{}} }

func (o *openRequests) add(id jsonrpc.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids[id] = true
}

func (o *openRequests) remove(id jsonrpc.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ids, id)
}

func (o *openRequests) has(id jsonrpc.ID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ids[id]
}

// find returns the id of the request that an answer with this id is for: some servers send numbers
// as texts, and some no id with an error. If it cannot be told, find returns the id as it is.
func (o *openRequests) find(id jsonrpc.ID) jsonrpc.ID {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids[id] {
		return id
	}
	for open := range o.ids {
		if id.Raw() == fmt.Sprint(open.Raw()) || id.Raw() == noID && len(o.ids) == 1 {
			return open
		}
	}
	return id
}

// waitFor waits until l permits another event, or done is closed.
func waitFor(l *rate.Limiter, done <-chan struct{}) {
	delay := l.Reserve().Delay()
	if delay == 0 {
		return
	}
	select {
	case <-time.After(delay):
	case <-done:
	}
}

// perSecond returns a limiter that lets n events through per second.
func perSecond(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(n), n) }

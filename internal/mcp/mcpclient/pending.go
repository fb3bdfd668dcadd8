package mcpclient

import (
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// requests are unanswered requests of one side, by their ids.
type requests struct {
	mu      sync.Mutex
	ids     map[jsonrpc.ID]bool
	removed chan struct{} // closed and replaced when a request is removed
}

func newRequests() *requests {
	return &requests{ids: map[jsonrpc.ID]bool{}, removed: make(chan struct{})}
}

// add records a request. The MCP SDK rejects a request of a server whose id is in use; it counts
// together with the other.
func (r *requests) add(id jsonrpc.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[id] = true
}

// remove records that a request is answered, or never will be.
func (r *requests) remove(id jsonrpc.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
	close(r.removed)
	r.removed = make(chan struct{})
}

func (r *requests) has(id jsonrpc.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[id]
}

// find returns the id of the request that an answer with this id is for: some servers send numbers
// as texts. If it cannot be told, find returns the id as it is.
func (r *requests) find(id jsonrpc.ID) jsonrpc.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[id] {
		return id
	}
	for open := range r.ids {
		if id.Raw() == fmt.Sprint(open.Raw()) {
			return open
		}
	}
	return id
}

// waitForRoom waits until there are fewer requests than l permits, or done is closed. The MCP SDK
// handles every request of a server that it reads at once and keeps it until the answer is written,
// so a server that asks without reading would fill our memory. It fails if the server reads no
// answers in time.
func (r *requests) waitForRoom(l limits, done <-chan struct{}) error {
	var late <-chan time.Time
	for {
		r.mu.Lock()
		full, removed := len(r.ids) >= l.MaxRequests, r.removed
		r.mu.Unlock()
		if !full {
			return nil
		}
		if late == nil {
			late = time.After(l.SettleMax)
		}
		select {
		case <-removed:
		case <-late:
			return &limitError{fmt.Sprintf("it sent %d requests and read no answers within %v",
				l.MaxRequests, l.SettleMax)}
		case <-done:
			return nil
		}
	}
}

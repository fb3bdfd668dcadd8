package mcpclient

import (
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// openRequests are our requests that are not answered yet, so that answers with another id than
// they should have find theirs.
type openRequests struct {
	mu  sync.Mutex
	ids map[jsonrpc.ID]bool
}

func (r *openRequests) add(id jsonrpc.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = map[jsonrpc.ID]bool{}
	}
	r.ids[id] = true
}

// remove records that a request is answered, or never will be.
func (r *openRequests) remove(id jsonrpc.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
}

// find returns the id of the request that an answer with this id is for, and whether there is one:
// some servers send numbers as texts.
func (r *openRequests) find(id jsonrpc.ID) (jsonrpc.ID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[id] {
		return id, true
	}
	for open := range r.ids {
		if id.Raw() == fmt.Sprint(open.Raw()) {
			return open, true
		}
	}
	return id, false
}

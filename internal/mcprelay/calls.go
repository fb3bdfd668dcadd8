package mcprelay

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// call is a call of a modern client that the relay may have to repeat.
type call struct {
	line   []byte          // as it was sent to the server first
	id     json.RawMessage // the client's
	at     string          // key of the id that the server has to answer now
	rounds int             // how often it was sent
}

// calls are those that are not answered.
type calls struct {
	prefix string // of the relay's own ids
	max    int

	mu    sync.Mutex
	held  map[string]*call // by at
	bytes int
	last  int
	empty chan struct{} // closed while none is held
}

// idPrefix begins the relay's own ids.
const idPrefix = "acp-agent-relay-"

func newCalls(nonce string, max int) *calls {
	c := &calls{prefix: idPrefix + nonce + "-", max: max, held: map[string]*call{}, empty: make(chan struct{})}
	close(c.empty)
	return c
}

// maxCalls is how many calls may be held.
const maxCalls = 4096

// hold keeps a call with a copy of its line. It refuses one that is too many.
func (c *calls) hold(line []byte, id json.RawMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.bytes+len(line) > c.max:
		return fmt.Errorf("calls that are not answered hold %d bytes, and %d are the limit: wait for some", c.bytes, c.max)
	case len(c.held) >= maxCalls:
		return fmt.Errorf("%d calls are not answered, which is the limit: wait for some", maxCalls)
	}
	key := idKey(id)
	c.remove(c.held[key])
	c.keep(&call{line: append([]byte(nil), line...), id: append(json.RawMessage(nil), id...), at: key, rounds: 1})
	return nil
}

// find is the call that an answer is for, nil if it is not held. ours says that the id is one of the relay's.
func (c *calls) find(id json.RawMessage) (found *call, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := textOf(id)
	return c.held[idKey(id)], ok && strings.HasPrefix(text, c.prefix)
}

// again returns the new id under which a call is repeated; ok is false if it was cancelled meanwhile.
func (c *calls) again(repeated *call) (id json.RawMessage, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[repeated.at] != repeated {
		return nil, false
	}
	c.last++
	id = quoted(fmt.Sprintf("%s%d", c.prefix, c.last))
	delete(c.held, repeated.at)
	repeated.at = idKey(id)
	repeated.rounds++
	c.held[repeated.at] = repeated
	return id, true
}

// finish forgets a call that was answered.
func (c *calls) finish(answered *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(answered)
}

// cancelled forgets the call with an id of the client's. It returns the id that the server knows it by, nil if that is
// the same.
func (c *calls) cancelled(id json.RawMessage) json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := idKey(id)
	for at, held := range c.held {
		if idKey(held.id) != key {
			continue
		}
		c.remove(held)
		if at == key {
			return nil
		}
		return json.RawMessage(at)
	}
	return nil
}

// none is closed once no call is held.
func (c *calls) none() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.empty
}

func (c *calls) keep(kept *call) {
	if len(c.held) == 0 {
		c.empty = make(chan struct{})
	}
	c.held[kept.at] = kept
	c.bytes += len(kept.line)
}

func (c *calls) remove(gone *call) {
	if gone == nil || c.held[gone.at] != gone {
		return
	}
	delete(c.held, gone.at)
	c.bytes -= len(gone.line)
	if len(c.held) == 0 {
		close(c.empty)
	}
}

package websocket

import (
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/internal/serve/budget"
)

// uncounted is how many bytes may be unconfirmed without room in the budget: so many that the other
// side confirms some of them at once.
const uncounted = 2 * confirmBytes

// outbox has the messages that the other side has not confirmed. Its methods are safe for
// concurrent use.
type outbox struct {
	budget budget.User // counts what is beyond uncounted

	mu          sync.Mutex
	sent        uint64        // messages so far
	unconfirmed queue         // the last of them
	reserved    int           // bytes of them that the budget counts
	room        chan struct{} // closed when unconfirmed shrinks; nil if nothing waits
}

// add adds a message. If it has no room, add returns a channel that is closed when there may be
// some.
func (o *outbox) add(message []byte) (room <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hasRoomLocked(len(message) + overhead) {
		o.unconfirmed.add(message)
		o.sent++
		return nil
	}
	if o.room == nil {
		o.room = make(chan struct{})
	}
	return o.room
}

// hasRoomLocked reports whether n more bytes may be unconfirmed. A message fits in any case if the
// other side has confirmed everything else.
func (o *outbox) hasRoomLocked(n int) bool {
	if o.unconfirmed.isFull() {
		return false
	}
	more := o.unconfirmed.size + n - uncounted - o.reserved
	switch {
	case more <= 0:
	case o.budget.Reserve(more):
		o.reserved += more
	default:
		return o.unconfirmed.size == 0
	}
	return true
}

// confirm forgets the first n messages: the other side has them. It reports whether n can be true,
// and whether it is new.
func (o *outbox) confirm(n uint64) (ok, isNew bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.sent - uint64(len(o.unconfirmed.messages))
	if n > o.sent {
		return false, false
	}
	o.unconfirmed.remove(int(max(n, first) - first)) // less is read than was received before a loss
	o.giveBackLocked()
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
	return true, n > first
}

// giveBackLocked gives back the room of what was confirmed.
func (o *outbox) giveBackLocked() {
	if unused := o.reserved - max(0, o.unconfirmed.size-uncounted); unused > 0 {
		o.reserved -= unused
		o.budget.Release(unused)
	}
}

// pending returns the messages that are not confirmed, in order.
func (o *outbox) pending() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.unconfirmed.messages)
}

// size returns how many bytes are not confirmed.
func (o *outbox) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.unconfirmed.size
}

func (o *outbox) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unconfirmed = queue{}
	o.giveBackLocked()
}

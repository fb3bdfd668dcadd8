package websocket

import (
	"sync"

	"github.com/acp-agent/acp-agent/internal/serve/budget"
)

// confirmMessages and confirmBytes are after how much each side confirms what was read.
const confirmMessages, confirmBytes = 64, 256 << 10

// inbox has the messages that have arrived and were not read. Its methods are safe for concurrent
// use.
type inbox struct {
	arrived, taken, confirm chan struct{} // unread has grown, has shrunk, or is to be confirmed

	most int // messages in unread

	mu                      sync.Mutex
	received                uint64        // messages so far
	unread                  queue         // the last of them
	large                   *budget.Large // is one of them, or was read last
	readMessages, readBytes int           // since the last confirmation
}

// newInbox returns an inbox for up to most messages at a time.
func newInbox(most int) inbox {
	return inbox{arrived: make(chan struct{}, 1), taken: make(chan struct{}, 1),
		confirm: make(chan struct{}, 1), most: most}
}

// signal makes the next receive from a channel of one element succeed.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// isFull reports whether the inbox has as many bytes as it may have.
func (i *inbox) isFull() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.unread.isFull()
}

// add adds a message. It returns false if the inbox has as many bytes or messages as it may have.
func (i *inbox) add(message []byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.unread.isFull() || len(i.unread.messages) >= i.most {
		return false
	}
	i.unread.add(message)
	i.received++
	signal(i.arrived)
	return true
}

// take returns the first message, if there is one, which is then read.
func (i *inbox) take() (message []byte, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.unread.messages) == 0 {
		return nil, false
	}
	message = i.unread.messages[0]
	i.unread.remove(1)
	signal(i.taken)
	i.readMessages, i.readBytes = i.readMessages+1, i.readBytes+len(message)
	if i.readMessages >= confirmMessages || i.readBytes >= confirmBytes {
		i.readMessages, i.readBytes = 0, 0
		signal(i.confirm)
	}
	return message, true
}

// counts returns how many messages have arrived, and how many of them were read.
func (i *inbox) counts() (received, read uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.received, i.received - uint64(len(i.unread.messages))
}

// hold makes the next large message of the owner wait for this one, and no longer for the one
// before. With nil it waits for none.
func (i *inbox) hold(l *budget.Large) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.large.Done()
	i.large = l
}

func (i *inbox) drop() {
	i.hold(nil)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unread = queue{}
}

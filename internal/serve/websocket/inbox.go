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

	mu                      sync.Mutex
	stopped                 bool          // nothing more is read
	received                uint64        // messages so far
	unread                  queue         // the last of them
	large                   *budget.Large // is one of them, or was read last
	readMessages, readBytes int           // since the last confirmation
}

func newInbox() inbox {
	return inbox{arrived: make(chan struct{}, 1), taken: make(chan struct{}, 1),
		confirm: make(chan struct{}, 1)}
}

// signal makes the next receive from a channel of one element succeed.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add adds a message, unless the inbox is full or has most messages.
func (i *inbox) add(message []byte, most int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.unread.isFull() || len(i.unread.messages) >= most {
		return false
	}
	i.unread.add(message)
	i.received++
	signal(i.arrived)
	return true
}

// isFull reports whether the inbox has as many bytes as it may have.
func (i *inbox) isFull() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.unread.isFull()
}

// take returns the first message, which is then read, unless there is none or reading has stopped.
func (i *inbox) take() (message []byte, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.unread.messages) == 0 || i.stopped {
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

// stop makes take return nothing more.
func (i *inbox) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
	signal(i.arrived)
}

func (i *inbox) isStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// count returns how many messages have arrived.
func (i *inbox) count() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.received
}

// read returns how many messages were read.
func (i *inbox) read() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.received - uint64(len(i.unread.messages))
}

// hold notes that a large message has arrived. The next one waits until dropLarge.
func (i *inbox) hold(l *budget.Large) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.large = l
}

// dropLarge makes room for the next large message of the owner.
func (i *inbox) dropLarge() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.large.Done()
	i.large = nil
}

// drop forgets all messages.
func (i *inbox) drop() {
	i.dropLarge()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unread = queue{}
}

package jsonrpc

import (
	"runtime/debug"
	"sync"
	"time"
)

// large is the size of the messages, in bytes, whose memory is returned to the system when they are
// done with. By itself a process that has become idle keeps it.
const large = 8 << 20

// memory returns unused memory to the system after a moment without large messages. It is safe for
// concurrent use.
type memory struct {
	mu      sync.Mutex
	timer   *time.Timer // nil until there was a large message
	stopped bool
}

// release is called when a message of size bytes is done with.
func (m *memory) release(size int) {
	if size <= large {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.stopped:
	case m.timer == nil:
		m.timer = time.AfterFunc(time.Second, debug.FreeOSMemory)
	default:
		m.timer.Reset(time.Second)
	}
}

// stop makes release do nothing from now on.
func (m *memory) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	if m.timer != nil {
		m.timer.Stop()
	}
}

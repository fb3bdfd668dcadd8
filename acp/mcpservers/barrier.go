package mcpservers

import (
	"sync"
	"time"
)

// barrier is shut while a server may still be reading the roots (M5). An answered roots/list alone proves nothing: the
// server has yet to take the answer in.
type barrier struct {
	mu      sync.Mutex
	open    chan struct{} // closed while the barrier is open
	timer   *time.Timer
	last    time.Time // by when it opens, whatever is asked
	armed   int
	without time.Duration
	after   time.Duration
	max     time.Duration
}

// newBarrier makes a barrier that is open.
func newBarrier(p Policy, max time.Duration) *barrier {
	b := &barrier{open: make(chan struct{}), without: p.SettleWithoutRoots, after: p.SettleAfterRoots, max: max}
	if b.without == 0 {
		b.without = 500 * time.Millisecond
	}
	if b.after == 0 {
		b.after = 100 * time.Millisecond
	}
	close(b.open)
	return b
}

// shut shuts the barrier: the server was initialized, or was told that the roots have changed.
func (b *barrier) shut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil {
		b.open = make(chan struct{})
	}
	b.last = time.Now().Add(b.max)
	b.set(b.without)
}

// asked: a roots/list was answered.
func (b *barrier) asked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.set(min(b.after, time.Until(b.last)))
	}
}

// set opens the barrier after d. The caller holds mu.
func (b *barrier) set(d time.Duration) {
	if b.timer != nil {
		b.timer.Stop()
	}
	b.armed++
	armed := b.armed
	b.timer = time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.armed == armed {
			b.lift()
		}
	})
}

// lift opens the barrier. The caller holds mu.
func (b *barrier) lift() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
		close(b.open)
	}
}

// end opens the barrier for good: the connection is over.
func (b *barrier) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lift()
}

// passed is closed once the barrier is open.
func (b *barrier) passed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

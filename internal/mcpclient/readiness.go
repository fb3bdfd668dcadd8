package mcpclient

import (
	"context"
	"sync"
	"time"
)

// barrier is shut while a server may still be reading the roots (M5). An answered roots/list alone proves nothing: the
// server has yet to take the answer in. Nor does time alone, on a busy machine: before the time counts, and after it, the
// server has to answer a ping, and one that takes long for that is given longer.
type barrier struct {
	without, after, max time.Duration
	news                chan struct{} // has one when something happened

	mu       sync.Mutex
	open     chan struct{} // closed while the barrier is open
	settling bool
	asked    int           // how many questions for roots were answered
	before   int           // of them, before the barrier was last shut
	since    time.Time     // when something happened last
	quiet    time.Duration // how long nothing has to happen after that
	slowest  time.Duration // of the answers to pings
	last     time.Time     // when it opens, whatever is asked
}

// patienceFactor is how many times longer than a ping a server may take to read the roots.
const patienceFactor = 10

// due is when the barrier may open, if nothing happens until then. The caller holds mu.
func (b *barrier) due() time.Time { return b.since.Add(max(b.quiet, patienceFactor*b.slowest)) }

// newBarrier makes a barrier that is open.
func newBarrier(p Policy, max time.Duration) *barrier {
	b := &barrier{
		open: make(chan struct{}), news: make(chan struct{}, 1), max: max,
		without: p.SettleWithoutRoots, after: p.SettleAfterRoots,
	}
	if b.without == 0 {
		b.without = 500 * time.Millisecond
	}
	if b.after == 0 {
		b.after = 100 * time.Millisecond
	}
	close(b.open)
	return b
}

// shut shuts the barrier: the server was initialized, or is told that the roots have changed. If it was
// open, the caller has to call settle.
func (b *barrier) shut() (wasOpen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wasOpen = !b.settling
	if wasOpen {
		b.open, b.settling = make(chan struct{}), true
	}
	b.last, b.before = time.Now().Add(b.max), b.asked
	b.happened(b.without)
	return wasOpen
}

// answered: the server was told the roots.
func (b *barrier) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	b.happened(b.after)
}

// happened has the server be quiet for so long from now on. The caller holds mu.
func (b *barrier) happened(quiet time.Duration) {
	b.since, b.quiet = time.Now(), quiet
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// settle opens the barrier in time, or when ctx ends. ping waits for an answer of the server.
func (b *barrier) settle(ctx context.Context, ping func(context.Context) error) {
	defer b.lift()
	if !b.pinged(ctx, ping) {
		return
	}
	b.mu.Lock()
	if b.asked == b.before { // only now it has read that it may ask
		b.happened(b.without)
	}
	b.mu.Unlock()
	for b.wait(ctx) {
		b.mu.Lock()
		asked := b.asked
		b.mu.Unlock()
		if !b.pinged(ctx, ping) {
			return
		}
		b.mu.Lock()
		done := b.asked == asked && !time.Now().Before(b.due())
		b.mu.Unlock()
		if done {
			return
		}
	}
}

// pinged has the server answer a ping before the barrier opens anyway.
func (b *barrier) pinged(ctx context.Context, ping func(context.Context) error) bool {
	b.mu.Lock()
	ctx, cancel := context.WithDeadline(ctx, b.last)
	b.mu.Unlock()
	defer cancel()
	began := time.Now()
	if ping(ctx) != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slowest = max(b.slowest, time.Since(began))
	return true
}

// wait waits until the server has been quiet. It reports whether there is time left.
func (b *barrier) wait(ctx context.Context) bool {
	for {
		b.mu.Lock()
		due, last := b.due(), b.last
		b.mu.Unlock()
		now := time.Now()
		switch {
		case !now.Before(last):
			return false
		case !now.Before(due):
			return true
		}
		timer := time.NewTimer(min(due.Sub(now), last.Sub(now)))
		select {
		case <-timer.C:
		case <-b.news:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// lift opens the barrier.
func (b *barrier) lift() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settling {
		b.settling = false
		close(b.open)
	}
}

// passed is closed once the barrier is open.
func (b *barrier) passed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

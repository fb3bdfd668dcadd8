package mcpclient

import (
	"cmp"
	"context"
	"sync"
	"time"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// readiness tracks whether a server has had time to read the roots. A request for the roots is not
// enough, because the server must still process the answer. Nor is waiting, on a busy machine. So a
// server must also answer a ping before and after the waiting time, and a server that answers
// slowly gets more time.
type readiness struct {
	withoutRoots, afterRoots, max time.Duration
	event                         chan struct{} // receives when lastEvent changes

	mu           sync.Mutex
	readyNow     chan struct{} // closed while the server is ready
	settling     bool
	sent         int           // how often the roots were sent
	sentBefore   int           // sent at the last reset
	lastEvent    time.Time     // when something last happened
	quiet        time.Duration // how long nothing must happen after that
	slowestPing  time.Duration
	settleBefore time.Time // when the server counts as ready, whatever happens
}

// pingFactor says how much time a server gets to process the roots, as a multiple of the time that
// it takes to answer a ping.
const pingFactor = 10

// newReadiness returns the readiness of a server that is ready.
func newReadiness(p acpmcp.Policy, max time.Duration) *readiness {
	r := &readiness{
		readyNow: make(chan struct{}), event: make(chan struct{}, 1), max: max,
		withoutRoots: cmp.Or(p.SettleWithoutRoots, 500*time.Millisecond),
		afterRoots:   cmp.Or(p.SettleAfterRoots, 100*time.Millisecond),
	}
	close(r.readyNow)
	return r
}

// ready returns a channel that is closed once the server is ready.
func (r *readiness) ready() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readyNow
}

// initialized makes the server not ready until it has had time to read its first roots, for which
// it may have asked already. The caller must call settle or markReady.
func (r *readiness) initialized() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readyNow, r.settling = make(chan struct{}), true
	r.settleBefore = time.Now().Add(r.max)
	if r.sent == 0 {
		r.requireQuiet(r.withoutRoots)
	}
}

// reset makes the server not ready, because the roots have changed. If it was ready, the caller
// must call settle or markReady.
func (r *readiness) reset() (wasReady bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wasReady = !r.settling
	if wasReady {
		r.readyNow, r.settling = make(chan struct{}), true
	}
	r.settleBefore, r.sentBefore = time.Now().Add(r.max), r.sent
	r.requireQuiet(r.withoutRoots)
	return wasReady
}

// rootsSent records that the server was sent the roots.
func (r *readiness) rootsSent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	r.requireQuiet(r.afterRoots)
}

// markReady makes the server ready.
func (r *readiness) markReady() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settling {
		r.settling = false
		close(r.readyNow)
	}
}

// requireQuiet makes settle wait until nothing has happened for d from now on. The caller holds mu.
func (r *readiness) requireQuiet(d time.Duration) {
	r.lastEvent, r.quiet = time.Now(), d
	select {
	case r.event <- struct{}{}:
	default:
	}
}

// settle waits until the server has had time to read the roots, and makes it ready, at the latest
// when ctx ends. ping sends the server a ping and waits for the answer.
func (r *readiness) settle(ctx context.Context, ping func(context.Context) error) {
	defer r.markReady()
	if !r.ping(ctx, ping) {
		return
	}
	r.mu.Lock()
	if r.sent == r.sentBefore { // only now has it certainly read that it may ask
		r.requireQuiet(r.withoutRoots)
	}
	r.mu.Unlock()
	for r.waitQuiet(ctx) {
		r.mu.Lock()
		sent := r.sent
		r.mu.Unlock()
		if !r.ping(ctx, ping) {
			return
		}
		r.mu.Lock()
		done := r.sent == sent && !time.Now().Before(r.due())
		r.mu.Unlock()
		if done {
			return
		}
	}
}

// ping measures a ping. It reports whether the server has answered before settleBefore.
func (r *readiness) ping(ctx context.Context, ping func(context.Context) error) bool {
	r.mu.Lock()
	ctx, cancel := context.WithDeadline(ctx, r.settleBefore)
	r.mu.Unlock()
	defer cancel()
	began := time.Now()
	if ping(ctx) != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slowestPing = max(r.slowestPing, time.Since(began))
	return true
}

// waitQuiet waits until nothing has happened for long enough. It reports whether that is before
// settleBefore.
func (r *readiness) waitQuiet(ctx context.Context) bool {
	for {
		r.mu.Lock()
		due, latest := r.due(), r.settleBefore
		r.mu.Unlock()
		now := time.Now()
		switch {
		case !now.Before(latest):
			return false
		case !now.Before(due):
			return true
		}
		select {
		case <-time.After(min(due.Sub(now), latest.Sub(now))):
		case <-r.event:
		case <-ctx.Done():
			return false
		}
	}
}

// due returns the time at which the server will have been quiet for long enough if nothing happens
// before. The caller holds mu.
func (r *readiness) due() time.Time {
	return r.lastEvent.Add(max(r.quiet, pingFactor*r.slowestPing))
}

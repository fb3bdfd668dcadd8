package mcpclient

import (
	"cmp"
	"sync"
	"time"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// readiness says when a server has had time to read the roots: a while after it was sent them,
// because it must still process the answer, or after it could have asked for them.
type readiness struct {
	withoutRoots, afterRoots, max time.Duration

	mu     sync.Mutex
	ready  chan struct{} // closed once the server is ready
	timer  *time.Timer   // closes ready; nil while the server is ready
	latest time.Time     // when the server counts as ready, whatever happens
	sent   bool          // it was sent the roots since they changed
}

// newReadiness returns the readiness of a server that is ready.
func newReadiness(p acpmcp.Policy, max time.Duration) *readiness {
	r := &readiness{
		ready: make(chan struct{}), max: max,
		withoutRoots: cmp.Or(p.SettleWithoutRoots, 500*time.Millisecond),
		afterRoots:   cmp.Or(p.SettleAfterRoots, 100*time.Millisecond),
	}
	close(r.ready)
	return r
}

// wait returns a channel that is closed once the server is ready.
func (r *readiness) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready
}

// begin makes the server not ready until it has had time to read its roots, which it may have asked
// for already unless they have changed.
func (r *readiness) begin(changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = r.sent && !changed
	if r.timer == nil {
		r.ready = make(chan struct{})
	}
	r.latest = time.Now().Add(r.max)
	r.pause()
}

// rootsSent records that the server was sent the roots.
func (r *readiness) rootsSent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = true
	if r.timer != nil {
		r.pause()
	}
}

// pause makes the server ready when nothing has happened for a while from now on. The caller holds
// mu.
func (r *readiness) pause() {
	quiet := r.withoutRoots
	if r.sent {
		quiet = r.afterRoots
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(min(quiet, time.Until(r.latest)), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.timer == timer {
			r.timer = nil
			close(r.ready)
		}
	})
	r.timer = timer
}

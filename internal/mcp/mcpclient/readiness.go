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
	at     time.Time // when the server is ready, unless something happens before
	latest time.Time // when it counts as ready, whatever happens
	sent   bool      // it was sent the roots since they changed
}

// newReadiness returns the readiness of a server that is ready.
func newReadiness(p acpmcp.Policy, max time.Duration) *readiness {
	return &readiness{
		max:          max,
		withoutRoots: cmp.Or(p.SettleWithoutRoots, 500*time.Millisecond),
		afterRoots:   cmp.Or(p.SettleAfterRoots, 100*time.Millisecond),
	}
}

// left returns how long the server is not ready yet, as far as is known now.
func (r *readiness) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.at)
}

// begin makes the server not ready until it has had time to read its roots, which it may have asked
// for already unless they have changed.
func (r *readiness) begin(changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = r.sent && !changed
	r.latest = time.Now().Add(r.max)
	r.pauseLocked()
}

// rootsSent records that the server was sent the roots.
func (r *readiness) rootsSent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = true
	if time.Now().Before(r.at) {
		r.pauseLocked()
	}
}

// pauseLocked makes the server ready when nothing has happened for a while from now on.
func (r *readiness) pauseLocked() {
	quiet := r.withoutRoots
	if r.sent {
		quiet = r.afterRoots
	}
	if r.at = time.Now().Add(quiet); r.at.After(r.latest) {
		r.at = r.latest
	}
}

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
	at     time.Time     // when the server is ready, unless something happens before
	latest time.Time     // when it counts as ready, whatever happens
	quiet  time.Duration // what must pass: afterRoots if it was sent them as they are
}

// newReadiness returns the readiness of a server that is ready.
func newReadiness(p acpmcp.Policy, max time.Duration) *readiness {
	without := cmp.Or(p.SettleWithoutRoots, 500*time.Millisecond)
	after := cmp.Or(p.SettleAfterRoots, 100*time.Millisecond)
	return &readiness{withoutRoots: without, afterRoots: after, max: max, quiet: without}
}

// left returns how long the server is not ready yet, as far as is known now.
func (r *readiness) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.at)
}

// begin makes the server not ready until it has had time to read its roots, which it may have asked
// for already.
func (r *readiness) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = time.Now().Add(r.max)
	r.pauseLocked()
}

// rootsChanged records that the server was not sent the roots as they are.
func (r *readiness) rootsChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quiet = r.withoutRoots
}

// rootsSent records that the server was sent the roots.
func (r *readiness) rootsSent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quiet = r.afterRoots
	if time.Now().Before(r.at) {
		r.pauseLocked()
	}
}

// pauseLocked makes the server ready when nothing has happened for a while from now on.
func (r *readiness) pauseLocked() {
	if r.at = time.Now().Add(r.quiet); r.at.After(r.latest) {
		r.at = r.latest
	}
}

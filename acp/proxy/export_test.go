package proxy

import (
	"cmp"
	"time"

	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
)

// Limits are bounds and times that tests change.
type Limits = limits

// With returns o with other limits.
func (o Options) With(l Limits) Options {
	o.limits = l
	return o
}

// WithChild returns o with other limits for children.
func (o Options) WithChild(l child.Limits) Options {
	o.limits.Limits = l
	return o
}

// WithProcessGrace returns o with another grace for the process if none is set.
func (o Options) WithProcessGrace(d time.Duration) Options {
	o.limits.ProcessGrace = cmp.Or(o.limits.ProcessGrace, d)
	return o
}

// Running returns how many processes are running.
func (p *Pool) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

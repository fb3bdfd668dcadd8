package mcpclient

import (
	"cmp"
	"time"
)

// Limits are the limits of a set, for tests.
type Limits = limits

// With returns o with limits, where zero fields mean the defaults.
func (o Options) With(l Limits) Options {
	o.limits = l
	return o
}

// WithBackoff returns o with a backoff, unless it has one.
func (o Options) WithBackoff(d time.Duration) Options {
	o.limits.Backoff = cmp.Or(o.limits.Backoff, d)
	return o
}

// WithPatience returns o with d for each limit of what servers do on their way to being ready,
// unless it has another.
func (o Options) WithPatience(d time.Duration) Options {
	o.Wait = cmp.Or(o.Wait, d)
	o.limits.StartTimeout = cmp.Or(o.limits.StartTimeout, d)
	o.limits.SettleMax = cmp.Or(o.limits.SettleMax, d)
	return o
}

package client

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

// NewStarterFor returns a Starter that lets n servers start at once.
func NewStarterFor(n int) *Starter { return &Starter{slots: make(chan struct{}, n)} }

// Allow remembers that the user always allows s.
func (c *Consents) Allow(s FoundServer) error { return c.allow(s) }

// Allowed reports whether the user always allows s.
func (c *Consents) Allowed(s FoundServer) (bool, error) { return c.allowed(s) }

// ErrDenied is returned when the user did not allow something.
var ErrDenied = errDenied

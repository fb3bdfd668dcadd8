package acp

import (
	"cmp"
	"time"
)

// Tuning are the bounds and delays that tests change.
type Tuning = tuning

// With returns o with t.
func (o Options) With(t Tuning) Options {
	o.tuning = t
	return o
}

// Tuning returns what With set.
func (o *Options) Tuning() *Tuning { return &o.tuning }

// BePatient sets delays to d that a busy machine would exceed, unless a test has set them.
func (t *Tuning) BePatient(d time.Duration) {
	for _, delay := range []*time.Duration{
		&t.Imports.Wait, &t.Imports.Timeout, &t.RescanWait, &t.CancelGrace, &t.MCP.Wait, &t.SlowViewer,
	} {
		*delay = cmp.Or(*delay, d)
	}
}

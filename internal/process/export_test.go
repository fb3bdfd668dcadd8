package process

import "time"

// WithTermGrace sets the time between SIGTERM and SIGKILL.
func (o Options) WithTermGrace(d time.Duration) Options {
	o.termGrace = d
	return o
}

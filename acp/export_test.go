package acp

// Tuning are the bounds and delays that tests change.
type Tuning = tuning

// With returns o with t.
func (o Options) With(t Tuning) Options {
	o.tuning = t
	return o
}

// Tuning returns what With set.
func (o *Options) Tuning() *Tuning { return &o.tuning }

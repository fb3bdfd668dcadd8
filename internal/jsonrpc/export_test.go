package jsonrpc

// WithLimits sets the bounds that are constants outside tests. Zero keeps the default.
func (o Options) WithLimits(unanswered, unansweredBytes, abandoned int) Options {
	o.limits = limits{unanswered: unanswered, unansweredBytes: unansweredBytes, abandoned: abandoned}
	return o
}

// WithUnsentBytes sets the limit for responses that wait.
func (o Options) WithUnsentBytes(n int) Options {
	o.limits.unsentBytes = n
	return o
}

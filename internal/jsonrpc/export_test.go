package jsonrpc

// WithLimits sets the bounds that are constants outside tests. Zero keeps the default.
func (o Options) WithLimits(unanswered, unansweredBytes, abandoned int) Options {
	o.limits = limits{unanswered: unanswered, unansweredBytes: unansweredBytes, abandoned: abandoned}
	return o
}

package jsonrpc

// WithLimits sets the bounds that are constants outside tests. Zero keeps the default.
func (o Options) WithLimits(unanswered, bytes, abandoned int) Options {
	o.limits = limits{unanswered: unanswered, bytes: bytes, abandoned: abandoned}
	return o
}

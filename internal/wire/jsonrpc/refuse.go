package jsonrpc

import (
	"context"
	"encoding/json"
	"time"
)

// Refuse tells a peer that is not served the reason, as the answer to its first request: programs
// show that, but not why a connection has ended. It waits for the request for up to 3 seconds. The
// caller closes the transport.
func Refuse(ctx context.Context, t Transport, reason *Error) {
	const patience = 3 * time.Second
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	handler := func(_ context.Context, r *Request) Work {
		r.AfterResponse(stop)
		return func() (json.RawMessage, error) { return nil, reason }
	}
	_ = NewConn(t, HandlerFunc(handler), Options{}).Serve(ctx)
}

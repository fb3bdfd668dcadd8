package acp

import (
	"context"
	"errors"
	"time"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// The context of a request ends when the client cancels the request, and when the client leaves.
// Work that must go on after one or both of these events uses one of the contexts below.

// requestContext returns a context for a request that is answered even after the client has closed
// its end: it ends when the client cancels the request, or with the connection. The caller calls
// cancel.
func (a *agent) requestContext(
	ctx context.Context,
) (_ context.Context, cancel context.CancelCauseFunc) {
	lasting, end := context.WithCancelCause(a.base)
	pass := func() {
		if cause := context.Cause(ctx); !errors.Is(cause, jsonrpc.ErrClosed) {
			end(cause)
		}
	}
	stop := context.AfterFunc(ctx, pass)
	if ctx.Err() != nil {
		pass() // now, rather than when the goroutine of AfterFunc runs
	}
	return lasting, func(cause error) {
		stop()
		end(cause)
	}
}

// closingContext returns a context for closing a session, which outlives the cancellation of the
// request. Once the client has left, it lasts only for half of the grace, so that there is time to
// kill MCP servers that do not end and to send the response.
func (a *agent) closingContext(ctx context.Context) (context.Context, context.CancelFunc) {
	closing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) {
			time.AfterFunc(a.options.tuning.CloseGrace/2, cancel)
		}
	})
	return closing, func() {
		stop()
		cancel()
	}
}

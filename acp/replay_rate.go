package acp

import (
	"context"
	"errors"

	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// replayBurst is how many updates of a load are sent without delay.
const replayBurst = 512

// replayRate limits the rate of a load's replay to what clients can handle. A pipe pushes back when
// a client does not read, but some clients read everything and keep what they have not handled yet:
// the Go SDK's keeps 1,024 notifications and then closes the connection.
type replayRate struct {
	request context.Context
	limiter *rate.Limiter
}

// newReplayRate returns the limit of a load whose request has the context request, in updates a
// second. There is no limit if perSecond is negative.
func newReplayRate(request context.Context, perSecond int) *replayRate {
	limit := rate.Limit(perSecond)
	if perSecond < 0 {
		limit = rate.Inf
	}
	return &replayRate{request, rate.NewLimiter(limit, replayBurst)}
}

// wait returns when the next update may be sent, or ctx ended. A client that has closed its end
// gets the rest at once: the program has little time left.
func (r *replayRate) wait(ctx context.Context) {
	if !errors.Is(context.Cause(r.request), jsonrpc.ErrClosed) {
		_ = r.limiter.Wait(ctx)
	}
}

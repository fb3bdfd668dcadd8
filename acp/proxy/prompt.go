package proxy

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
)

// prompt is a prompt of the client, which was or will be sent to the child.
type prompt struct {
	ctx     context.Context // of the turn
	params  backend.Raw
	updates backend.Updates
	sent    chan struct{} // closed when the prompt was sent, or will not be

	// lasting is the context of the request to the child. It lives on for a while after ctx,
	// because a cancelled turn ends with the child's own answer.
	lasting context.Context
	end     context.CancelCauseFunc // ends lasting

	abandoned bool // nobody waits for the child's answer; guarded by the childSession
}

// cancelled is the Work of a cancelled turn.
func cancelled() (backend.Raw, error) {
	return backend.Stopped(sdk.StopReasonCancelled), nil
}

// extend returns a context that lives on after ctx for a grace period and then ends with
// ErrNoAnswer. The returned function ends it earlier.
func extend(ctx context.Context, grace time.Duration) (context.Context, context.CancelCauseFunc) {
	extended, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { end(fmt.Errorf("%w within %v", child.ErrNoAnswer, grace)) })
	})
	return extended, func(cause error) {
		stop()
		end(cause)
	}
}

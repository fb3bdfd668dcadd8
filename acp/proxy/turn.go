package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-agent/acp-agent/acp/runtime"
)

// turn is a prompt that the child was sent.
type turn struct {
	ctx     context.Context
	updates runtime.Updates
}

// cutShort reports whether the turn was ended before the child ended it.
func (t *turn) cutShort() bool {
	return t.ctx.Err() != nil && !errors.Is(context.Cause(t.ctx), runtime.ErrTurnOver)
}

var cancelled = runtime.Raw(`{"stopReason":"cancelled"}`)

// Prompt sends the child the prompt.
func (s *session) Prompt(ctx context.Context, params runtime.Raw, u runtime.Updates) runtime.Work {
	t := &turn{ctx: ctx, updates: u}
	s.mu.Lock()
	s.turn = t
	params, err := introduced(params, s.introduction)
	s.introduction = ""
	s.mu.Unlock()
	if err == nil {
		params, err = s.named(params)
	}
	if err != nil {
		return failed(err)
	}
	// The child is to end a turn that was cancelled by itself: its answer is waited for.
	lasting, free := outlast(ctx, s.agent.options.CancelGrace)
	work := s.agent.call(lasting, "session/prompt", params)
	return func() (runtime.Raw, error) {
		defer free()
		result, err := work()
		if errors.Is(err, errNoAnswer) {
			// The turn stays: what the child still says in it is not for the client.
			s.agent.log.Warn("the agent did not end a cancelled turn", "grace", s.agent.options.CancelGrace)
			return cancelled, nil
		}
		s.over(t)
		return result, err
	}
}

// over says that the child has answered t's prompt.
func (s *session) over(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn == t {
		s.turn = nil
	}
}

// Cancel tells the child that the turn is to end.
func (s *session) Cancel(params runtime.Raw) {
	s.Notify(context.Background(), "session/cancel", params)
}

var errNoAnswer = errors.New("the agent did not answer")

// outlast returns a context that ends, with errNoAnswer, a grace after ctx. free ends it sooner.
func outlast(ctx context.Context, grace time.Duration) (lasting context.Context, free func()) {
	lasting, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			end(fmt.Errorf("%w within %v", errNoAnswer, grace))
		case <-lasting.Done():
		}
	})
	return lasting, func() {
		stop()
		end(nil)
	}
}

package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// turn is a prompt that the child was sent, or is to be.
type turn struct {
	ctx     context.Context
	updates backend.Updates
}

var cancelled = backend.Raw(`{"stopReason":"cancelled"}`)

// Prompt sends the child the prompt. A child that has ended is started anew first.
func (s *session) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	t := &turn{ctx: ctx, updates: u}
	s.setTurn(nil)
	if l := s.living(); l != nil {
		return s.announcing(t, s.send(l, t, params))
	}
	return s.announcing(t, func() (backend.Raw, error) {
		l, err := s.revive(ctx, blocksOf(params))
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		return s.send(l, t, params)()
	})
}

// announcing is the work of a turn, before which the client is told what commands there are now.
func (s *session) announcing(t *turn, work backend.Work) backend.Work {
	if !s.announced.isOutdated(s.host.Catalog()) {
		return work
	}
	return func() (backend.Raw, error) {
		if err := s.announceFound(t.ctx, t.updates); err != nil {
			s.proxy.log.Debug("the commands of the roots were not announced", "error", err)
		}
		return work()
	}
}

// send sends the child the prompt, with the context that it is to be given.
func (s *session) send(l *link, t *turn, params backend.Raw) backend.Work {
	with, due, err := s.outgoing(t.ctx, params)
	if err != nil {
		return failed(err)
	}
	// The child is to end a turn that was cancelled by itself: its answer is waited for.
	lasting, free := outlast(t.ctx, s.proxy.options.limits.cancelGrace)
	s.sending.Lock()
	defer s.sending.Unlock()
	if t.ctx.Err() != nil { // while the child was started: it need not hear of the turn
		free()
		return func() (backend.Raw, error) { return cancelled, nil }
	}
	if with, err = l.named(with); err != nil {
		free()
		return failed(err)
	}
	l.beginTurn(t)
	s.sent = l
	work := l.agent.ask(lasting, "session/prompt", with, func(backend.Raw, error) {
		l.endTurn(t)
		l.behind.add(jsonrpc.Answered(t.ctx))
	})
	return func() (backend.Raw, error) {
		defer free()
		result, err := work()
		switch {
		case err == nil:
			s.proxy.thrives()
			s.given(lasting, due)
		case errors.Is(err, jsonrpc.ErrQueueFull):
			l.endTurn(t) // it was not sent
		case errors.Is(err, errNoAnswer):
			// What the child still says in the turn is not for the client.
			s.proxy.log.Warn("the agent did not end a cancelled turn", "grace", s.proxy.options.limits.cancelGrace)
			return cancelled, nil
		}
		return result, err
	}
}

// setTurn says where the turn is that a cancel is for, nil if the child has not been sent it.
func (s *session) setTurn(l *link) {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.sent = l
}

// Cancel tells the child that the turn is to end, if it has begun there.
func (s *session) Cancel(params backend.Raw) {
	s.sending.Lock()
	l := s.sent
	s.sending.Unlock()
	if l == nil {
		return
	}
	if params, err := l.named(params); err == nil {
		l.agent.cancel(params)
	}
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

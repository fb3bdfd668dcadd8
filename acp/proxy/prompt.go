package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// turn is a prompt that is or will be sent to the child.
type turn struct {
	ctx     context.Context
	updates backend.Updates
}

// Prompt implements [backend.Session]: it sends the prompt to the child. A child that has ended is restarted first.
func (s *session) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	t := &turn{ctx: ctx, updates: u}
	s.promptMu.Lock()
	s.promptedIn = nil
	s.promptMu.Unlock()
	cs := s.use()
	if _, late := s.lateReplay(); cs != nil && !late {
		return s.announceBefore(t, cs.child.whileUsed(s.send(cs, t, params)))
	}
	return s.announceBefore(t, func() (backend.Raw, error) {
		if cs == nil {
			var err error
			cs, err = s.revive(ctx, countBlocks(params))
			switch {
			case err != nil && ctx.Err() != nil:
				return cancelled()
			case err != nil:
				return nil, err
			}
		}
		defer cs.child.unuse()
		s.awaitReplay(ctx, cs)
		return s.send(cs, t, params)()
	})
}

// announceBefore wraps the work of a turn: if the roots were scanned since the last announcement, their commands are announced
// first.
func (s *session) announceBefore(t *turn, work backend.Work) backend.Work {
	if !s.announced.outdated(s.host.Catalog()) {
		return work
	}
	return func() (backend.Raw, error) {
		s.announceRoots(t.ctx, t.updates)
		return work()
	}
}

// send sends the prompt to the child, with the context that it needs.
func (s *session) send(cs *childSession, t *turn, params backend.Raw) backend.Work {
	params, told, err := s.childPrompt(t.ctx, params)
	if err != nil {
		return failed(err)
	}
	// A cancelled turn ends with the child's own answer.
	lasting, free := extend(t.ctx, s.proxy.options.limits.cancelGrace)
	s.promptMu.Lock()
	defer s.promptMu.Unlock()
	if t.ctx.Err() != nil { // cancelled while the child was started
		free()
		return cancelled
	}
	if params, err = withSessionID(params, cs.id); err != nil {
		free()
		return failed(err)
	}
	cs.beginTurn(t)
	s.promptedIn = cs
	work := cs.child.callFunc(lasting, "session/prompt", params, func(backend.Raw, error) {
		cs.endTurn(t)
		cs.barrier.add(jsonrpc.Answered(t.ctx))
	})
	return func() (backend.Raw, error) {
		defer free()
		result, err := work()
		switch {
		case err == nil:
			s.proxy.children.answered()
			s.contextDelivered(lasting, cs, told)
		case errors.Is(err, jsonrpc.ErrQueueFull):
			cs.endTurn(t) // it was not sent
		case errors.Is(err, errNoAnswer):
			// The turn stays open in cs: its late updates are not for the client.
			s.proxy.log.Warn("the agent did not end a cancelled turn in time", "limit", s.proxy.options.limits.cancelGrace)
			return cancelled()
		}
		return result, err
	}
}

// cancelled is the Work of a cancelled turn.
func cancelled() (backend.Raw, error) {
	return backend.Encode(sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}), nil
}

// Cancel implements [backend.Session]: it passes session/cancel on if the child was sent the prompt.
func (s *session) Cancel(params backend.Raw) {
	s.promptMu.Lock()
	cs := s.promptedIn
	s.promptMu.Unlock()
	if cs == nil {
		return
	}
	if params, err := withSessionID(params, cs.id); err == nil {
		cs.child.cancel(params)
	}
}

// extend returns a context that ends, with errNoAnswer, a grace after ctx. free ends it earlier.
func extend(ctx context.Context, grace time.Duration) (extended context.Context, free func()) {
	extended, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			end(fmt.Errorf("%w within %v", errNoAnswer, grace))
		case <-extended.Done():
		}
	})
	return extended, func() {
		stop()
		end(nil)
	}
}

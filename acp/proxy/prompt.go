package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// turn represents a prompt that was or will be sent to the child.
type turn struct {
	ctx     context.Context
	updates backend.Updates
	blocks  int           // of content in a prompt that is sent later; guarded by promptMu
	before  *turn         // the prompt before it, nil if that was sent
	sent    chan struct{} // closed when the prompt was sent, or will not be
	giveUp  func()        // ends the wait for the child's answer

	abandoned bool // nobody waits for the child's answer; guarded by the child session
}

// lastUnsent returns the last of t and the prompts before it that was not sent yet, or nil.
func (t *turn) lastUnsent() *turn {
	for t != nil {
		select {
		case <-t.sent:
			t = t.before
		default:
			return t
		}
	}
	return nil
}

// unsentBlocks returns the number of content blocks of the prompts that were not sent yet. They are
// at the end of the history.
func (s *session) unsentBlocks() (n int) {
	s.promptMu.Lock()
	defer s.promptMu.Unlock()
	for t := s.latest.lastUnsent(); t != nil; t = t.before.lastUnsent() {
		n += t.blocks
	}
	return n
}

// Prompt implements [backend.Session]: it sends the prompt to the child, also during a turn: the
// child decides what becomes of both. A child that has ended is restarted first.
func (s *session) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	t := &turn{ctx: ctx, updates: u, sent: make(chan struct{})}
	s.promptMu.Lock()
	t.before = s.latest.lastUnsent()
	s.latest = t
	s.promptMu.Unlock()
	var cs *childSession
	if t.before == nil {
		cs = s.pin()
	}
	if cs != nil {
		defer close(t.sent)
		return s.announceBefore(t, cs.child.whilePinned(s.send(cs, t, params)))
	}
	blocks := countBlocks(params)
	s.promptMu.Lock()
	t.blocks = blocks
	s.promptMu.Unlock()
	return s.announceBefore(t, func() (backend.Raw, error) {
		return s.sendLater(t, params)()
	})
}

// sendLater sends a prompt once all earlier prompts were sent and the child runs.
func (s *session) sendLater(t *turn, params backend.Raw) backend.Work {
	defer close(t.sent)
	for before := t.before; before != nil; before = before.before {
		select {
		case <-before.sent:
		case <-t.ctx.Done():
			return cancelled
		}
	}
	cs, err := s.revive(t.ctx)
	switch {
	case err != nil && t.ctx.Err() != nil:
		return cancelled
	case err != nil:
		return jsonrpc.Fail(err)
	}
	return cs.child.whilePinned(s.send(cs, t, params))
}

// announceBefore wraps the work of a turn: if the roots were scanned since the last announcement,
// their commands are announced first.
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
	params, told, err := s.childPrompt(t.ctx, cs, params)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	// A cancelled turn ends with the child's own answer.
	lasting, end := extend(t.ctx, s.proxy.options.limits.CancelGrace)
	t.giveUp = func() { end(fmt.Errorf("%w before another prompt of the session", errNoAnswer)) }
	s.promptMu.Lock()
	defer s.promptMu.Unlock()
	unsent := func(work backend.Work) backend.Work {
		end(nil)
		s.contextLost(cs, told)
		return work
	}
	if t.ctx.Err() != nil { // cancelled while the child was started
		return unsent(cancelled)
	}
	cs.beginTurn(t)
	params = withSessionID(params, cs.id)
	work := cs.child.requestFunc(lasting, protocol.SessionPrompt, params, func(backend.Raw, error) {
		cs.endTurn(t)
		cs.barrier.add(jsonrpc.Answered(t.ctx))
	})
	return func() (backend.Raw, error) {
		defer end(nil)
		if told.note != "" {
			if err := t.updates.Update(t.ctx, backend.Text(told.note+"\n\n")); err != nil {
				s.proxy.log.Debug("the note about a command was not sent", "error", err)
			}
		}
		stop := s.tellRefusals(t, cs.child)
		result, err := work()
		stop()
		s.tellDenials(t.ctx, t.updates)
		if err == nil {
			s.proxy.children.failures.Store(0)
			s.contextDelivered(lasting, cs, told)
			return result, nil
		}
		s.contextLost(cs, told)
		switch {
		case errors.Is(err, jsonrpc.ErrQueueFull):
			cs.endTurn(t) // it was not sent
		case errors.Is(err, errNoAnswer):
			// Until the next turn, the child's late updates are not sent to the client.
			cs.locked(func() { t.abandoned = true })
			s.proxy.log.Warn("the agent did not end a cancelled turn in time", "error", err)
			return cancelled()
		}
		return result, err
	}
}

// cancelled is the Work of a cancelled turn.
func cancelled() (backend.Raw, error) {
	return backend.Stopped(sdk.StopReasonCancelled), nil
}

// Cancel implements [backend.Session]: it passes session/cancel on if the child was sent prompts
// whose turns all end. If another turn continues, it only cancels the requests of those that end.
func (s *session) Cancel(params backend.Raw) {
	s.promptMu.Lock()
	defer s.promptMu.Unlock()
	cs := s.running()
	if cs == nil {
		return
	}
	ended, others := cs.endedTurns()
	switch {
	case len(ended) == 0:
	case others:
		for _, t := range ended {
			t.giveUp()
		}
	default:
		cs.child.cancel(withSessionID(params, cs.id))
	}
}

// extend returns a context that lives on after ctx for a grace period and then ends with
// errNoAnswer. The returned function ends it earlier.
func extend(
	ctx context.Context, grace time.Duration,
) (context.Context, context.CancelCauseFunc) {
	extended, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { end(fmt.Errorf("%w within %v", errNoAnswer, grace)) })
	})
	return extended, func(cause error) {
		stop()
		end(cause)
	}
}

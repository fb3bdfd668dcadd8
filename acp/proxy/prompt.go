package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// prompt is a prompt of the client, which was or will be sent to the child.
type prompt struct {
	ctx     context.Context
	params  backend.Raw
	updates backend.Updates
	sent    chan struct{} // closed when the prompt was sent, or will not be
	giveUp  func()        // ends the wait for the child's answer

	abandoned bool // nobody waits for the child's answer; guarded by the child session
}

// promptQueue are the prompts of a session that were not sent to the child yet, in order. It lives as
// long as the activation.
type promptQueue struct {
	// mu guards unsent. It is held while a prompt or session/cancel is sent, so that none overtakes
	// another.
	mu     sync.Mutex
	unsent []*prompt
}

// add adds a prompt, and returns those before it.
func (q *promptQueue) add(p *prompt) (earlier []*prompt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	earlier = slices.Clone(q.unsent)
	q.unsent = append(q.unsent, p)
	return earlier
}

// settle notes that a prompt was sent, or will not be.
func (q *promptQueue) settle(p *prompt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unsent = slices.DeleteFunc(q.unsent, func(other *prompt) bool { return other == p })
	close(p.sent)
}

// blocks returns the number of content blocks of the prompts. They are at the end of the history.
func (q *promptQueue) blocks() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.unsent {
		n += countBlocks(p.params)
	}
	return n
}

// Prompt implements [backend.Session]: it sends the prompt to the child, also during a turn: the
// child decides what becomes of both. A child that has ended is restarted first.
func (s *session) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	p := &prompt{ctx: ctx, params: params, updates: u, sent: make(chan struct{})}
	earlier := s.prompts.add(p)
	if len(earlier) == 0 {
		if cs := s.current.pin(); cs != nil {
			defer s.prompts.settle(p)
			return s.announceBefore(p, cs.child.whilePinned(s.send(cs, p)))
		}
	}
	return s.announceBefore(p, func() (backend.Raw, error) { return s.sendAfter(earlier, p)() })
}

// sendAfter sends a prompt once all earlier prompts were sent and the child runs.
func (s *session) sendAfter(earlier []*prompt, p *prompt) backend.Work {
	defer s.prompts.settle(p)
	for _, before := range earlier {
		select {
		case <-before.sent:
		case <-p.ctx.Done():
			return cancelled
		}
	}
	cs, err := s.revive(p.ctx)
	switch {
	case err != nil && p.ctx.Err() != nil:
		return cancelled
	case err != nil:
		return jsonrpc.Fail(err)
	}
	return cs.child.whilePinned(s.send(cs, p))
}

// announceBefore wraps the work of a turn: if the roots were scanned since the last announcement,
// their commands are announced first.
func (s *session) announceBefore(p *prompt, work backend.Work) backend.Work {
	if !s.commands.outdated(s.host.Catalog()) {
		return work
	}
	return func() (backend.Raw, error) {
		s.commands.announceRoots(p.ctx, s.host.Catalog(), p.updates)
		return work()
	}
}

// send sends the prompt to the child, with the context that it needs.
func (s *session) send(cs *childSession, p *prompt) backend.Work {
	params, told, err := s.childPrompt(p.ctx, cs, p.params)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	// A cancelled turn ends with the child's own answer.
	lasting, end := extend(p.ctx, s.proxy.options.limits.CancelGrace)
	p.giveUp = func() { end(fmt.Errorf("%w before another prompt of the session", errNoAnswer)) }
	s.prompts.mu.Lock()
	defer s.prompts.mu.Unlock()
	unsent := func(work backend.Work) backend.Work {
		end(nil)
		s.current.contextLost(cs, told)
		return work
	}
	if p.ctx.Err() != nil { // cancelled while the child was started
		return unsent(cancelled)
	}
	cs.addPrompt(p)
	params = withSessionID(params, cs.id)
	work := cs.child.requestFunc(lasting, protocol.SessionPrompt, params, func(backend.Raw, error) {
		cs.removePrompt(p)
		cs.barrier.add(jsonrpc.Answered(p.ctx))
	})
	return func() (backend.Raw, error) {
		defer end(nil)
		if told.note != "" {
			if err := p.updates.Update(p.ctx, backend.Text(told.note+"\n\n")); err != nil {
				s.proxy.log.Debug("the note about a command was not sent", "error", err)
			}
		}
		s.hints.tell(p, cs.child)
		result, err := work()
		s.hints.tell(p, cs.child)
		if err == nil {
			s.proxy.children.failures.Store(0)
			s.current.contextDelivered(lasting, cs, told)
			return result, nil
		}
		s.current.contextLost(cs, told)
		switch {
		case errors.Is(err, jsonrpc.ErrQueueFull):
			cs.removePrompt(p) // it was not sent
		case errors.Is(err, errNoAnswer):
			// Until the next turn, the child's late updates are not sent to the client.
			cs.locked(func() { p.abandoned = true })
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
	s.prompts.mu.Lock()
	defer s.prompts.mu.Unlock()
	cs := s.current.running()
	if cs == nil {
		return
	}
	ended, others := cs.endedPrompts()
	switch {
	case len(ended) == 0:
	case others:
		for _, p := range ended {
			p.giveUp()
		}
	default:
		cs.child.cancel(withSessionID(params, cs.id))
	}
}

// extend returns a context that lives on after ctx for a grace period and then ends with
// errNoAnswer. The returned function ends it earlier.
func extend(ctx context.Context, grace time.Duration) (context.Context, context.CancelCauseFunc) {
	extended, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { end(fmt.Errorf("%w within %v", errNoAnswer, grace)) })
	})
	return extended, func(cause error) {
		stop()
		end(cause)
	}
}

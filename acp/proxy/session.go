package proxy

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/workspace"
)

// session is one activation of a session, connected to a session of a child.
type session struct {
	proxy   *proxy
	host    backend.Host
	roots   workspace.Roots
	params  backend.Raw // of its lifecycle request, to open it again in a restarted child
	history iter.Seq2[backend.Update, error]
	relays  *relays // nil if its MCP servers have none
	tells   bool    // our tool server tells the child what is in the roots
	// refusesTools is set if the child takes no such server.
	refusesTools atomic.Bool
	announced    *announcement
	// nested returns the instructions of directories below the roots, and whether the list is
	// complete. It looks for them only once.
	nested func() ([]discovery.Artifact, bool)

	reviving chan struct{} // a semaphore, held while the child is restarted for the session

	// promptMu is held while a prompt or session/cancel is sent, so that none overtakes another.
	promptMu sync.Mutex
	unsent   []*prompt // that were not sent yet, in order

	mu      sync.Mutex
	current *childSession // nil once closed
	closed  bool
	state   state // as saved
	// pendingHistory is the conversation to tell the child in its next prompt, or "".
	pendingHistory string
	// telling is the child session in which a prompt with context is unanswered, or nil. Until the
	// answer, further prompts are sent without context.
	telling *childSession
	updates updateFilter
	hints   hints
}

// running returns the session of the child, or nil if the child is not running or must open it
// again.
func (s *session) running() *childSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.outdated.Load() || !s.current.child.running() {
		return nil
	}
	return s.current
}

// pin is running, and pins the child.
func (s *session) pin() *childSession {
	cs := s.running()
	if cs == nil || !cs.child.pin() {
		return nil
	}
	return cs
}

// Call implements [backend.Session]: it passes the request on.
func (s *session) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if cs := s.pin(); cs != nil {
		return cs.child.whilePinned(cs.forward(ctx, method, params))
	}
	return func() (backend.Raw, error) {
		cs, err := s.revive(ctx)
		if err != nil {
			return nil, err
		}
		defer cs.child.unpin()
		return cs.forward(ctx, method, params)()
	}
}

// Notify implements [backend.Session]: it passes the notification on, unless the child has ended.
func (s *session) Notify(_ context.Context, method string, params backend.Raw) {
	cs := s.pin()
	if cs == nil {
		s.proxy.log.Info("dropped a notification for an agent that has ended", "method", method)
		return
	}
	defer cs.child.unpin()
	cs.child.notify(method, withSessionID(params, cs.id))
}

// Close implements [backend.Session]: it closes the child's session, unless another activation uses
// it.
func (s *session) Close(ctx context.Context) error {
	_, err := s.CloseFor(ctx, backend.Raw(`{}`))
	return err
}

// CloseFor implements [backend.Closer].
func (s *session) CloseFor(
	ctx context.Context, params backend.Raw,
) (result backend.Raw, err error) {
	s.mu.Lock()
	cs := s.current
	s.current, s.closed = nil, true
	s.mu.Unlock()
	if cs != nil {
		result, err = cs.leave(ctx, s, params)
	}
	return result, errors.Join(err, s.relays.leave(s))
}

// revive opens the child's session again, mostly because the child has ended, and pins the child.
func (s *session) revive(ctx context.Context) (*childSession, error) {
	select {
	case s.reviving <- struct{}{}:
		defer func() { <-s.reviving }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if cs := s.pin(); cs != nil {
		return cs, nil
	}
	s.mu.Lock()
	before, saved, closed := s.current, s.state, s.closed
	s.mu.Unlock()
	if closed {
		return nil, errSessionClosed
	}
	if err := before.child.awaitEnd(ctx); err != nil {
		return nil, err
	}
	lost := before.child.router.subagents(before)
	r := opening{Activation: backend.Activation{Cause: backend.Resume}, state: saved}
	_, cs, err := s.open(ctx, r)
	if err != nil {
		return nil, err
	}
	s.proxy.log.Info("a session was opened again in the agent", "child", cs.child.process.Name())
	s.loseSubagents(ctx, lost)
	cs.repeatSettings(ctx, before)
	return cs, nil
}
